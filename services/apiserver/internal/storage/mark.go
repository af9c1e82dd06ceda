package storage

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// MigrationKey holds the mark of a cluster to which a store was moved, or from which one was moved away. It is no API
// object.
const MigrationKey = "/keelson/migration"

// Kinds of marks.
const (
	// Arriving marks a cluster that holds only a part of a store that is being moved to it.
	Arriving = "arriving"
	// Here marks a cluster to which a store was moved.
	Here = "here"
	// Left marks a cluster whose store was moved away.
	Left = "left"
)

// Mark says what became of the store of a cluster. Without one, no store was moved to it.
type Mark struct {
	// Kind is Arriving, Here or Left. Only a cluster that is Here, or has no mark, is used by apiservers.
	Kind string `json:"kind,omitempty"`
	// Mesh is the identity of the mesh whose store it is; empty: it has none.
	Mesh string `json:"mesh,omitempty"`
	// Move tells the move to the cluster from others; empty: the store was not moved to it. (Clusters that are begun
	// alike have the same ID.)
	Move string `json:"move,omitempty"`
}

// String returns the value of the key.
func (m Mark) String() string {
	text, _ := json.Marshal(m) // of strings alone
	return string(text)
}

// ReadMark reads the mark of a cluster.
func ReadMark(ctx context.Context, kv clientv3.KV) (Mark, error) {
	got, err := kv.Get(ctx, MigrationKey)
	if err != nil {
		return Mark{}, fmt.Errorf("reading whether the store was moved: %w", err)
	}
	if len(got.Kvs) == 0 {
		return Mark{}, nil
	}
	mark := Mark{}
	err = json.Unmarshal(got.Kvs[0].Value, &mark)
	if err != nil || mark.Kind != Arriving && mark.Kind != Here && mark.Kind != Left {
		return Mark{}, fmt.Errorf("the key %s of the cluster has the value %q, which this program does not know",
			MigrationKey, got.Kvs[0].Value)
	}
	return mark, nil
}

// refusal is why an apiserver does not use a cluster; nil: it may.
func (m Mark) refusal(servers []string) error {
	at := strings.Join(servers, ",")
	switch m.Kind {
	case Arriving:
		return fmt.Errorf("--etcd-servers: %s holds only a part of the store of the mesh %s, as a move to it was cut "+
			"off: keel store migrate --to etcd finishes it", at, m.Mesh)
	case Left:
		return fmt.Errorf("--etcd-servers: the store of the mesh %s was moved away from %s: keel store migrate --to "+
			"embedded, run again, finishes that, and the embedded store is used from then on", m.Mesh, at)
	}
	return nil
}
