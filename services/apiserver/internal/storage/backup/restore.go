package backup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"go.uber.org/zap"

	"keelson.dev/kit/daemon"
	"keelson.dev/kit/failpoint"
	"keelson.dev/services/apiserver/internal/storage"
	"keelson.dev/services/apiserver/internal/storage/storedir"
)

const (
	// stagingSuffix ends the name under which a store is restored; whatever has it is of a restore that was cut off.
	stagingSuffix = ".restoring"
	// keptInfix stands between the store's name and the time in the name of one that was put aside.
	keptInfix = ".kept-"
)

// restoring is a restore to do.
type restoring struct {
	file, dataDir      string
	replace, otherMesh bool
	now                time.Time
}

// restored is what became of it.
type restored struct {
	content  Content
	revision int64
	store    string
	// kept is where the store lies that was there; empty: there was none.
	kept string
}

// restore makes the snapshot the store of the data directory. Killed at any instruction it leaves the store that was
// there, or the restored one, and neither in parts.
func (r restoring) restore(ctx context.Context) (*restored, error) {
	content, _, err := Verify(r.file)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(r.dataDir, 0o700); err != nil {
		return nil, err
	}
	lock, err := lockStopped(r.dataDir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = lock.Close() }()
	paths := storedir.Of(r.dataDir)
	plan, err := r.plan(paths, content)
	if err != nil {
		return nil, err
	}
	staging := paths.Store + stagingSuffix
	if err := failpoint.Around("apiserver/restore.stage", func() error {
		return r.stage(ctx, staging, content, plan.bump)
	}); err != nil {
		return nil, errors.Join(err, os.RemoveAll(staging))
	}
	done := &restored{content: content, revision: content.Revision + int64(plan.bump), store: paths.Store}
	if plan.aside {
		done.kept = paths.Store + keptInfix + r.now.UTC().Format(stampLayout)
	}
	return done, install(paths, staging, done.kept, plan.forget)
}

// lockStopped keeps apiservers off the store of a data directory until the file is closed.
func lockStopped(dataDir string) (*os.File, error) {
	lock, err := storage.Lock(dataDir)
	if errors.Is(err, storage.ErrInUse) {
		return nil, inUse(dataDir)
	}
	return lock, err
}

// inUse is the error of what cannot be done while an apiserver runs.
func inUse(dataDir string) error {
	return fmt.Errorf("an apiserver has the store in %s open: end it first, by keel down or systemctl stop "+
		"keelson-apiserver", dataDir)
}

// plan looks at what is there.
func (r restoring) plan(paths storedir.Paths, content Content) (restorePlan, error) {
	f := found{paths: paths, snapshot: content, file: r.file, replace: r.replace, otherMesh: r.otherMesh, now: r.now}
	var err error
	if f.moved, err = storedir.ReadMoved(paths); err != nil {
		return restorePlan{}, err
	}
	if f.identity, err = storedir.ReadIdentity(paths); err != nil {
		return restorePlan{}, err
	}
	if _, err := os.Lstat(paths.Store); err == nil {
		f.store, f.revision = true, lastRevision(paths.Database)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return restorePlan{}, err
	}
	plan, err := decideRestore(f)
	return plan, daemon.UsageError(err)
}

// lastRevision is that of the store that is there; 0: it cannot be read, which may be why there is a restore.
func lastRevision(database string) (revision int64) {
	_ = storedir.View(database, func(tx *bbolt.Tx) error {
		if keys := tx.Bucket(schema.Key.Name()); keys != nil {
			if last, _ := keys.Cursor().Last(); last != nil {
				revision = mvcc.BytesToRev(last).Main
			}
		}
		return nil
	})
	return revision
}

// stage makes the new store, and compares it with the snapshot. When it returns, the store survives a crash.
func (r restoring) stage(ctx context.Context, staging string, want Content, bump uint64) error {
	if err := os.RemoveAll(staging); err != nil {
		return err
	}
	name, token, peers := storage.Member()
	if err := withoutExit(ctx, func(log *zap.Logger) error {
		return snapshot.NewV3(log).Restore(snapshot.RestoreConfig{
			SnapshotPath: r.file, RevisionBump: bump, MarkCompacted: true,
			OutputDataDir: staging, Name: name, InitialClusterToken: token,
			PeerURLs: []string{peers}, InitialCluster: name + "=" + peers,
		})
	}); err != nil {
		return fmt.Errorf("restoring %s: %w", r.file, err)
	}
	got, err := inspectDatabase(storedir.At(staging).Database)
	if err != nil {
		return err
	}
	if want.Revision += int64(bump); got.Checksum != want.Checksum || got.Revision != want.Revision {
		return fmt.Errorf("%s was not restored as it is: the store holds %s in place of %s", r.file, got, want)
	}
	return syncTree(staging)
}
