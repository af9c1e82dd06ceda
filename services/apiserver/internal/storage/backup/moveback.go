package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sys/unix"

	"keelson.dev/kit/daemon"
	"keelson.dev/kit/failpoint"
	"keelson.dev/services/apiserver/internal/storage"
	"keelson.dev/services/apiserver/internal/storage/storedir"
)

// incomingName is the name of the snapshot of a cluster while its store is moved back.
const incomingName = "etcd.incoming"

// toEmbedded moves the store of the cluster into the data directory. Killed at any instruction it leaves the cluster as
// it is; or marked as left, so that no apiserver uses it, and the next run does the rest.
func (m migrating) toEmbedded(ctx context.Context) (*migrated, error) {
	lock, err := lockStopped(m.dataDir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = lock.Close() }()
	v, err := m.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer v.close()
	first, err := decideToEmbedded(v.seen)
	if err != nil {
		return nil, daemon.UsageError(err)
	}
	done := &migrated{}
	switch {
	case first.installed:
		return done, v.finishToEmbedded()
	case first.forward:
		if done.kept, err = v.finishToEtcd(ctx); err != nil {
			return nil, err
		}
	case first.release:
		if err := v.stay(ctx); err != nil {
			return nil, err
		}
	}
	if done.moved, err = v.take(ctx); err != nil {
		return nil, err
	}
	return done, v.finishToEmbedded()
}

// finishToEmbedded does what is left once the store has its name.
func (v *move) finishToEmbedded() error {
	return failpoint.Around("apiserver/migrate.return", func() error { return storedir.ForgetMoved(v.paths) })
}

// take makes the store of the cluster that of the data directory, and marks the cluster as left.
func (v *move) take(ctx context.Context) (*copied, error) {
	s := source{cluster: v.cluster}
	member, closeMember, err := s.dial(ctx)
	if err != nil {
		return nil, err
	}
	defer closeMember()
	writes, err := follow(ctx, member)
	if err != nil {
		return nil, err
	}
	defer writes.end()
	quiet := time.After(v.quiet)
	staging := v.paths.Store + stagingSuffix
	done, err := v.stageBack(ctx, member, staging)
	if err == nil {
		err = v.leave(ctx, writes, quiet)
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(staging))
	}
	return done, failpoint.Around("apiserver/migrate.install", func() error {
		if err := rename(staging, v.paths.Store, unix.RENAME_NOREPLACE); err != nil {
			return err
		}
		return syncDir(filepath.Dir(v.paths.Store))
	})
}

// stageBack makes the new store of a snapshot of the cluster, and compares it with the cluster.
func (v *move) stageBack(ctx context.Context, member *clientv3.Client, staging string) (*copied, error) {
	f := &folder{path: v.dataDir}
	partial, err := f.write(incomingName, func(to io.Writer) error { return stream(ctx, member, to) })
	if err != nil {
		return nil, fmt.Errorf("taking the cluster's snapshot: %w", err)
	}
	defer func() { _ = os.Remove(partial) }()
	content, err := Inspect(partial)
	if err != nil {
		return nil, fmt.Errorf("what the cluster sent is no snapshot: %w", err)
	}
	if content.Identity != "" && v.identity != "" && content.Identity != v.identity {
		return nil, daemon.UsageError(fmt.Errorf("the etcd cluster at %s holds the mesh %s, but %s says %s: give the "+
			"cluster of this mesh", v.servers, content.Identity, v.paths.Identity, v.identity))
	}
	last, err := member.Get(ctx, storage.MigrationKey)
	if err != nil {
		return nil, fmt.Errorf("reading the cluster's revision: %w", err)
	}
	bump := backBy(content.Revision, last.Header.Revision)
	if err := failpoint.Around("apiserver/migrate.stage", func() error {
		return restoring{file: partial}.stage(ctx, staging, content, uint64(bump))
	}); err != nil {
		return nil, err
	}
	cluster, err := hold(ctx, member.KV, content.Revision, nil)
	if errors.Is(err, rpctypes.ErrCompacted) { // only deletes came after it
		cluster, err = hold(ctx, member.KV, 0, nil)
	}
	if err != nil {
		return nil, err
	}
	if now := cluster.content(); now.Checksum != content.Checksum {
		return nil, fmt.Errorf("the cluster holds %s, and its snapshot %s: the store stays where it was", now, content)
	}
	return &copied{content: content, revision: content.Revision + bump}, nil
}

// leave marks the cluster as left, unless something was written to it since the snapshot.
func (v *move) leave(ctx context.Context, writes *writes, quiet <-chan time.Time) error {
	if err := writes.none(ctx, quiet); err != nil {
		return err
	}
	mark := storage.Mark{Kind: storage.Left, Mesh: v.identity, Move: v.mark.Move}
	if err := failpoint.Around("apiserver/migrate.leave", func() error { return v.setMark(ctx, mark) }); err != nil {
		return err
	}
	if err := writes.untilMark(ctx); err != nil {
		return errors.Join(err, v.stay(ctx))
	}
	return nil
}

// stay takes the mark back that the cluster was left.
func (v *move) stay(ctx context.Context) error {
	return v.setMark(ctx, storage.Mark{Kind: storage.Here, Mesh: v.identity, Move: v.mark.Move})
}
