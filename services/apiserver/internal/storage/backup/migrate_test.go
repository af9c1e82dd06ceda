package backup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"keelson.dev/kit/failpoint"
	"keelson.dev/services/apiserver/internal/storage"
	"keelson.dev/services/apiserver/internal/storage/storedir"
)

// soon is how long a cluster has to be quiet in tests.
const soon = "50ms"

// newCluster is an etcd of its own without anything in it.
func newCluster(t *testing.T) *opened {
	t.Helper()
	dir, err := os.MkdirTemp("", "cluster") // a short name, for its socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := open(t, dir)
	if _, err := s.client.KV.Delete(t.Context(), storage.IdentityKey); err != nil {
		t.Fatal(err)
	}
	return s
}

// forth and back are the arguments that move a store to the cluster, and back.
func (s *opened) forth(dir string) []string {
	return []string{"migrate", "--to", "etcd", "--etcd-servers", s.url(), "--data-dir", dir}
}

func (s *opened) back(dir string) []string {
	return []string{"migrate", "--to=embedded", "--etcd-servers", s.url(), "--data-dir", dir, "--quiet", soon}
}

func (s *opened) url() string { return "unix://" + filepath.Join(s.dir, "etcd.sock") }

func (s *opened) cluster() storage.Cluster { return storage.Cluster{Servers: []string{s.url()}} }

// usable is what keeps an apiserver from using the cluster.
func (s *opened) usable(t *testing.T) error {
	t.Helper()
	client, err := s.cluster().Open(t.Context(), zap.NewNop())
	if err == nil {
		_ = client.Close()
	}
	return err
}

func (s *opened) hold(t *testing.T) holding {
	t.Helper()
	h, err := hold(t.Context(), s.client.KV, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	return h.without(storage.MigrationKey)
}

// filled is a store that was written to for some time, and has an object with a lease.
func filled(t *testing.T) *opened {
	t.Helper()
	s := open(t, newDir(t))
	for round := range 3 {
		for i := range 150 {
			s.put(t, fmt.Sprintf("/registry/pods/default/p%d", i), strings.Repeat(fmt.Sprint(round), 100+i))
		}
	}
	lease, err := s.client.Grant(t.Context(), 3600)
	if err != nil {
		t.Fatal(err)
	}
	s.put(t, "/registry/events/default/e", "1", clientv3.WithLease(lease.ID))
	return s
}

// compactedBefore fails unless whoever watches from a revision that was seen is told to list again.
func (s *opened) compactedBefore(t *testing.T, last int64) {
	t.Helper()
	for _, from := range []int64{1, last / 2, last, last + 1} {
		watch := <-s.client.Watch(t.Context(), "/registry/", clientv3.WithPrefix(), clientv3.WithRev(from))
		if !errors.Is(watch.Err(), rpctypes.ErrCompacted) {
			t.Errorf("a watch from %d of %d: %v", from, last, watch.Err())
		}
	}
}

// A store that moves to a cluster and back is the same object by object, and no revision goes back on the way.
func TestMigrate(t *testing.T) {
	s := filled(t)
	before := s.hold(t)
	s.Close()
	c := newCluster(t)
	out := must(t, c.forth(s.dir)...)
	after := c.hold(t)
	if d := compare(before, after); len(d.wrong) > 0 || len(d.expired) > 0 {
		t.Errorf("the cluster differs: %+v", d)
	}
	if want := before.content(); !strings.Contains(out, want.Checksum) || after.content().Checksum != want.Checksum {
		t.Errorf("it said %q, the checksum was %s", out, want.Checksum)
	}
	for key, entry := range after.entries {
		if entry.revision <= before.revision {
			t.Errorf("%s is at %d, and clients have seen %d", key, entry.revision, before.revision)
		}
	}
	c.compactedBefore(t, before.revision)
	if err := c.usable(t); err != nil {
		t.Error(err)
	}
	left, err := c.client.TimeToLive(t.Context(), clientv3.LeaseID(after.entries["/registry/events/default/e"].lease))
	if err != nil || left.GrantedTTL != 3600 || left.TTL < 60 {
		t.Errorf("the lease: %+v, %v", left, err)
	}
	s.unusable(t, "was moved to the etcd cluster at "+c.url())
	refused(t, 2, "the mesh's store is the etcd cluster at ", "restore", saveOf(t, c), "--replace", "--data-dir", s.dir)
	if again := must(t, c.forth(s.dir)...); !strings.Contains(again, "before") {
		t.Errorf("again: %q", again)
	}

	last := c.put(t, "/registry/pods/default/late", "1")
	there := c.hold(t)
	must(t, c.back(s.dir)...)
	if err := c.usable(t); err == nil || !strings.Contains(err.Error(), "was moved away from ") {
		t.Errorf("the cluster that was left: %v", err)
	}
	if again := must(t, c.back(s.dir)...); !strings.Contains(again, "before") {
		t.Errorf("again: %q", again)
	}
	e := open(t, s.dir)
	if d := compare(there, e.hold(t)); len(d.wrong) > 0 || len(d.expired) > 0 {
		t.Errorf("back it differs: %+v", d)
	}
	e.compactedBefore(t, last)
	if at := e.put(t, "/registry/pods/default/later", "1"); at <= last {
		t.Errorf("the first write is %d, after %d", at, last)
	}
	e.Close()

	refused(t, 2, "still holds the store that was moved away", c.forth(s.dir)...)
	next := newCluster(t)
	must(t, next.forth(s.dir)...)
	refused(t, 2, "give the servers of the first", c.back(s.dir)...)
	refused(t, 2, "first brings it back", c.forth(s.dir)...)
}

// unusable fails unless an apiserver refuses the embedded store for that reason.
func (s *opened) unusable(t *testing.T, why string) {
	t.Helper()
	e, err := storage.StartEmbedded(t.Context(), s.dir, zap.NewNop())
	if err == nil {
		e.Close()
	}
	if err == nil || !strings.Contains(err.Error(), why) {
		t.Errorf("the embedded store: %v, want %q", err, why)
	}
}

func saveOf(t *testing.T, s *opened) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "s")
	must(t, "snapshot", file, "--etcd-servers", s.url())
	return file
}

// A cluster that was started from a snapshot of the store is only compared, whatever its revision: its objects keep
// theirs.
func TestMigrateToARestoredCluster(t *testing.T) {
	s := filled(t)
	file := filepath.Join(t.TempDir(), "s")
	must(t, "snapshot", file, "--data-dir", s.dir)
	before := s.hold(t)
	s.Close()
	dir, err := os.MkdirTemp("", "cluster")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	must(t, "restore", file, "--data-dir", dir)
	c := open(t, dir)
	must(t, c.forth(s.dir)...)
	after := c.hold(t)
	for key, entry := range before.entries {
		if after.entries[key] != entry {
			t.Errorf("%s: %+v, it was %+v", key, after.entries[key], entry)
		}
	}
	if err := c.usable(t); err != nil {
		t.Error(err)
	}
}

// Nothing is given up for a cluster that is no place for the store.
func TestMigrateRefuses(t *testing.T) {
	s := filled(t)
	c := newCluster(t)
	refused(t, 1, "an apiserver has the store in "+s.dir+" open", c.forth(s.dir)...)
	s.Close()
	c.put(t, "/other/key", "1")
	refused(t, 2, `is not empty: it holds 1 keys, "/other/key" among them`, c.forth(s.dir)...)
	if err := c.usable(t); err != nil {
		t.Errorf("it was marked: %v", err)
	}
	refused(t, 2, "holds a store, which was not moved", c.back(s.dir)...)
	refused(t, 2, "holds no store", c.forth(t.TempDir())...)
	for line, want := range map[string]string{
		"migrate":                `--to: "" must be etcd or embedded`,
		"migrate --to elsewhere": `--to: "elsewhere" must be etcd or embedded`,
		"migrate --to etcd":      "--etcd-servers is missing",
		"migrate x":              `unexpected argument "x"`,
		"migrate --to etcd --etcd-servers http://:1": "--etcd-servers: no server can be used",
	} {
		refused(t, 2, want, strings.Fields(line)...)
	}
	if got := open(t, s.dir); len(got.hold(t).entries) != 152 {
		t.Errorf("the store has %d keys", len(got.hold(t).entries))
	}
}

// A revision that writes cannot make up for is said before anything is written, and how to go on.
func TestMigrateFarBehind(t *testing.T) {
	file, s := saved(t)
	s.Close()
	must(t, "restore", file, "--replace", "--data-dir", s.dir)
	c := newCluster(t)
	refused(t, 2, "etcdutl snapshot restore FILE --bump-revision 1000 --mark-compacted", c.forth(s.dir)...)
	if err := c.usable(t); err != nil || len(c.hold(t).entries) > 0 {
		t.Errorf("%v, %d keys", err, len(c.hold(t).entries))
	}
}

// A damaged store is named, and nothing is written to the cluster.
func TestMigrateADamagedStore(t *testing.T) {
	s := filled(t)
	s.Close()
	c := newCluster(t)
	if err := os.Truncate(storedir.Of(s.dir).Database, 8192); err != nil {
		t.Fatal(err)
	}
	refused(t, 1, "restore the store (`keel store restore", c.forth(s.dir)...)
	if len(c.hold(t).entries) > 0 {
		t.Error("the cluster was written to")
	}
}

// What is copied is compared before the source is given up: a cluster that changes meanwhile does not get the store.
func TestMigrateComparesWhatItCopied(t *testing.T) {
	s := filled(t)
	before := s.hold(t)
	s.Close()
	c := newCluster(t)
	held := filepath.Join(t.TempDir(), "held")
	write(t, held, "")
	const place = "apiserver/migrate.verify.before"
	if err := failpoint.Arm(place, "hold("+held+")"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { failpoint.Disarm(place) })
	ended := make(chan string, 1)
	go func() {
		_, _, errOut := run(t.Context(), c.forth(s.dir)...)
		ended <- errOut
	}()
	eventually(t, "all to be copied", func() bool { return len(c.hold(t).entries) == len(before.entries) })
	c.put(t, "/registry/pods/default/p7", "changed")
	if err := os.Remove(held); err != nil {
		t.Fatal(err)
	}
	if said := <-ended; !strings.Contains(said, `1 keys differ, "/registry/pods/default/p7" first`) {
		t.Errorf("it said %q", said)
	}
	if err := c.usable(t); err == nil {
		t.Error("the cluster can be used")
	}
	failpoint.Disarm(place)
	e := open(t, s.dir)
	if got := e.hold(t).content(); got.Checksum != before.content().Checksum {
		t.Errorf("the store holds %+v", got)
	}
	e.Close()
	must(t, c.forth(s.dir)...)
	if got := c.hold(t).content(); got.Checksum != before.content().Checksum {
		t.Errorf("at last the cluster holds %+v", got)
	}
}

// A cluster that is written to keeps its store.
func TestMigrateBackFromAClusterInUse(t *testing.T) {
	s := filled(t)
	s.Close()
	c := newCluster(t)
	must(t, c.forth(s.dir)...)
	m := migrating{dataDir: s.dir, cluster: c.cluster(), now: time.Now(), quiet: time.Hour}
	ended := make(chan error, 1)
	go func() {
		_, err := m.toEmbedded(t.Context())
		ended <- err
	}()
	staging := storedir.Of(s.dir).Store + stagingSuffix
	eventually(t, "the cluster to be read", func() bool { return exists(staging) })
	lease, err := c.client.Grant(t.Context(), 600)
	if err != nil {
		t.Fatal(err)
	}
	c.put(t, "/registry/leases/kube-system/apiserver", "renewed", clientv3.WithLease(lease.ID))
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "still written to (/registry/leases/") {
		t.Errorf("%v", err)
	}
	if err := c.usable(t); err != nil {
		t.Error(err)
	}
	if left := list(t, s.dir); exists(staging) || exists(storedir.Of(s.dir).Store) {
		t.Errorf("there is %v", left)
	}
}

// Keys whose lease ends do not keep a store from moving: nobody has written them.
func TestWritten(t *testing.T) {
	event := func(kind, key string, lease int64) *clientv3.Event {
		e := &clientv3.Event{Type: clientv3.EventTypePut, Kv: keyValue(key, 0), PrevKv: keyValue(key, lease)}
		if kind == "delete" {
			e.Type = clientv3.EventTypeDelete
		}
		return e
	}
	for name, row := range map[string]struct {
		change clientv3.WatchResponse
		open   bool
		marked bool
		want   string
	}{
		"nothing":        {clientv3.WatchResponse{}, true, false, ""},
		"a lease ends":   {changes(event("delete", "e", 7)), true, false, ""},
		"an object ends": {changes(event("delete", "o", 0)), true, false, "still written to (o)"},
		"an object":      {changes(event("put", "o", 0)), true, false, "still written to (o)"},
		"an Event":       {changes(event("put", "e", 7)), true, false, "still written to (e)"},
		"the mark":       {changes(event("delete", "e", 7), event("put", storage.MigrationKey, 0)), true, true, ""},
		"before the mark": {changes(event("put", "o", 0), event("put", storage.MigrationKey, 0)), true, false,
			"still written to (o)"},
		"after the mark": {changes(event("put", storage.MigrationKey, 0), event("put", "o", 0)), true, true, ""},
		"compacted":      {clientv3.WatchResponse{CompactRevision: 7}, true, false, "following what is written"},
		"ended":          {clientv3.WatchResponse{}, false, false, "the cluster has ended that"},
	} {
		marked, err := written(row.change, row.open)
		if marked != row.marked || (row.want == "") != (err == nil) ||
			err != nil && !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %t, %v, want %t, %q", name, marked, err, row.marked, row.want)
		}
	}
}
