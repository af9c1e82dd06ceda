package backup

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"keelson.dev/kit/daemon"
	"keelson.dev/kit/failpoint"
	"keelson.dev/services/apiserver/internal/storage"
	"keelson.dev/services/apiserver/internal/storage/storedir"
)

// migrating is a move of a store to do, to an etcd cluster or back.
type migrating struct {
	dataDir string
	cluster storage.Cluster
	now     time.Time
	// quiet is for how long nothing may be written to a cluster before its store is taken away. It is longer than the
	// time between two writes of an apiserver that has nothing to do, which renews its Lease every five seconds.
	quiet time.Duration
}

// migrated is what became of it.
type migrated struct {
	// moved is nil if an earlier run had moved the store, and only the rest was done.
	moved *copied
	// kept is where the store lies that was there; empty: none was put aside.
	kept string
}

// copied is what was copied, and compared.
type copied struct {
	content Content
	// revision is that of the store that takes over.
	revision int64
	// expired are keys that were not copied, as their time was over.
	expired int
}

// move is a migration that has reached the cluster.
type move struct {
	migrating
	client *clientv3.Client
	seen
}

// begin connects to the cluster and looks at what is there.
func (m migrating) begin(ctx context.Context) (*move, error) {
	if err := m.cluster.Reach(ctx); err != nil {
		return nil, err
	}
	client, err := m.cluster.Dial(ctx, zap.NewNop())
	if err != nil {
		return nil, err
	}
	v := &move{migrating: m, client: client.Client}
	if err := v.look(ctx); err != nil {
		v.close()
		return nil, err
	}
	return v, nil
}

func (v *move) close() { _ = v.client.Close() }

func (v *move) look(ctx context.Context) (err error) {
	v.paths, v.servers = storedir.Of(v.dataDir), strings.Join(v.cluster.Servers, ",")
	v.store = exists(v.paths.Store)
	if v.identity, err = storedir.ReadIdentity(v.paths); err != nil {
		return err
	}
	if v.moved, err = storedir.ReadMoved(v.paths); err != nil {
		return err
	}
	if v.mark, err = storage.ReadMark(ctx, v.client); err != nil {
		return err
	}
	return nil
}

// toEtcd moves the store of the data directory to the cluster. Killed at any instruction it leaves the store as it is,
// and a cluster that no apiserver uses; or the note that the store was moved, and the next run does the rest.
func (m migrating) toEtcd(ctx context.Context) (*migrated, error) {
	v, err := m.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer v.close()
	finish, err := decideToEtcd(v.seen)
	if err != nil {
		return nil, daemon.UsageError(err)
	}
	done := &migrated{}
	if !finish {
		if done.moved, err = v.give(ctx); err != nil {
			return nil, err
		}
	}
	lock, err := lockStopped(m.dataDir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = lock.Close() }()
	done.kept, err = v.finishToEtcd(ctx)
	return done, err
}

// give copies the store, which it has open meanwhile so that no apiserver has, and notes that it was moved.
func (v *move) give(ctx context.Context) (*copied, error) {
	if err := v.alone(); err != nil {
		return nil, err
	}
	embedded, err := storage.StartEmbedded(ctx, v.dataDir, zap.NewNop())
	if err != nil {
		return nil, err
	}
	defer embedded.Close()
	own := embedded.Client()
	defer func() { _ = own.Close() }()
	done, err := v.copyFrom(ctx, own.Client)
	if err != nil {
		return nil, err
	}
	return done, failpoint.Around("apiserver/migrate.give", func() error {
		return storedir.WriteMoved(v.paths, storedir.Moved{Move: v.mark.Move, Servers: v.cluster.Servers})
	})
}

// alone is an error if an apiserver has the store open, or other machines have it, too.
func (v *move) alone() error {
	lock, err := lockStopped(v.dataDir)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }()
	found, err := storedir.Check(v.paths)
	if err != nil {
		return err
	}
	if found.Database != nil && found.Database.Members > 1 {
		return daemon.UsageError(fmt.Errorf("%s is one of %d machines' that have the store: keel reset --yes on the "+
			"others takes them out, and they join again as workers", v.paths.Store, found.Database.Members))
	}
	return nil
}

// finishToEtcd does what is left once it is noted that the store was moved: it has apiservers use the cluster, and puts
// the store aside.
func (v *move) finishToEtcd(ctx context.Context) (kept string, err error) {
	if v.mark.Kind != storage.Here {
		mark := storage.Mark{Kind: storage.Here, Mesh: v.mark.Mesh, Move: v.mark.Move}
		if err := failpoint.Around("apiserver/migrate.here", func() error { return v.setMark(ctx, mark) }); err != nil {
			return "", err
		}
	}
	if !exists(v.paths.Store) {
		return "", nil
	}
	for at := v.now; kept == "" || exists(kept); at = at.Add(time.Second) { // one may have been put aside just now
		kept = v.paths.Store + keptInfix + at.UTC().Format(stampLayout)
	}
	return kept, failpoint.Around("apiserver/migrate.aside", func() error {
		if err := rename(v.paths.Store, kept, unix.RENAME_NOREPLACE); err != nil {
			return err
		}
		return syncDir(filepath.Dir(v.paths.Store))
	})
}

func (v *move) setMark(ctx context.Context, mark storage.Mark) error {
	if _, err := v.client.Put(ctx, storage.MigrationKey, mark.String()); err != nil {
		return fmt.Errorf("marking the cluster: %w", err)
	}
	v.mark = mark
	return nil
}

// syncDir has what was done to a folder's names survive a crash.
func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	return dir.Sync()
}
