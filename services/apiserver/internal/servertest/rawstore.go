package servertest

import (
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
	"go.uber.org/zap"

	"keelson.dev/services/apiserver/inproc"
)

// RawStore reads and writes what the server that is changed so keeps, past any server.
type RawStore struct{ client *kubernetes.Client }

// OpenRawStore connects to the store that SharedStore has started.
func OpenRawStore(t testing.TB, shared func(*inproc.Config)) RawStore {
	t.Helper()
	config := inproc.NewConfig()
	shared(config)
	client, err := config.Etcd.Dial(t.Context(), zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return RawStore{client}
}

// Get is what lies at the key of an object.
func (r RawStore) Get(t testing.TB, key string) string {
	t.Helper()
	got, err := r.client.KV.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Kvs) != 1 {
		t.Fatalf("nothing lies at %s", key)
	}
	return string(got.Kvs[0].Value)
}

// Put writes over what lies at the key of an object.
func (r RawStore) Put(t testing.TB, key, value string) {
	t.Helper()
	if _, err := r.client.KV.Put(t.Context(), key, value); err != nil {
		t.Fatal(err)
	}
}

// Compact forgets what the store held before now.
func (r RawStore) Compact(t testing.TB) {
	t.Helper()
	now, err := r.client.KV.Get(t.Context(), "/", clientv3.WithCountOnly())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.client.Compact(t.Context(), now.Header.Revision, clientv3.WithCompactPhysical()); err != nil {
		t.Fatal(err)
	}
}

// Empty removes all keys.
func (r RawStore) Empty(t testing.TB) {
	t.Helper()
	if _, err := r.client.KV.Delete(t.Context(), "\x00", clientv3.WithFromKey()); err != nil {
		t.Fatal(err)
	}
}
