package backup

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"keelson.dev/kit/contained"
	"keelson.dev/kit/daemon"
	"keelson.dev/kit/failpoint"
	"keelson.dev/services/apiserver/internal/storage"
)

const (
	// batchKeys and batchBytes bound what is written at once, below what etcd takes by default.
	batchKeys, batchBytes = 100, 1 << 20
	// raisers write at once where only revisions are to be made.
	raisers = 100
)

// copyFrom makes the cluster hold what the store does, and nothing else. When it returns, clients that know the store
// are told to list again, and the cluster has the mark that no apiserver may use it yet.
func (v *move) copyFrom(ctx context.Context, source *clientv3.Client) (*copied, error) {
	original, err := hold(ctx, source.KV, 0, nil)
	if err != nil {
		return nil, err
	}
	original = original.without(storage.MigrationKey)
	target, err := hold(ctx, v.client.KV, 0, nil)
	if err != nil {
		return nil, err
	}
	target = target.without(storage.MigrationKey)
	if err := decideTarget(v.seen, original, target); err != nil {
		return nil, daemon.UsageError(err)
	}
	missing, err := decideRaise(original.revision, target.revision, v.servers)
	if err != nil {
		return nil, daemon.UsageError(err)
	}
	mark := storage.Mark{Kind: storage.Arriving, Mesh: original.identity, Move: uuid.NewString()}
	if err := failpoint.Around("apiserver/migrate.mark", func() error { return v.setMark(ctx, mark) }); err != nil {
		return nil, err
	}
	if err := failpoint.Around("apiserver/migrate.raise", func() error {
		return raise(ctx, v.client, mark, missing)
	}); err != nil {
		return nil, fmt.Errorf("raising the revision of the cluster: %w", err)
	}
	if err := v.write(ctx, source, original, target); err != nil {
		return nil, fmt.Errorf("copying the store to %s: %w", v.servers, err)
	}
	if err := failpoint.Inject("apiserver/migrate.verify.before"); err != nil {
		return nil, err
	}
	done, err := verifyCopy(ctx, v.client, original)
	if err != nil {
		return nil, err
	}
	return done, failpoint.Around("apiserver/migrate.compact", func() error {
		return compact(ctx, v.client, done.revision)
	})
}

// raise makes revisions: each write of the mark is one.
func raise(ctx context.Context, client *clientv3.Client, mark storage.Mark, missing int64) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var writers contained.Group
	for i := range int64(raisers) {
		writers.Go("raising a revision", func() {
			for n := i; n < missing && ctx.Err() == nil; n += raisers {
				if _, err := client.Put(ctx, storage.MigrationKey, mark.String()); err != nil {
					cancel(err) // the first is the cause
				}
			}
		}, cancel)
	}
	writers.Wait()
	return context.Cause(ctx)
}

// write writes the keys that are due, with their leases, and removes those that should not be there.
func (v *move) write(ctx context.Context, source *clientv3.Client, original, target holding) error {
	b := &batch{client: v.client, leases: &leases{source: source.Lease, target: v.client,
		raw: clientv3.RetryLeaseClient(v.client)}}
	if _, err := hold(ctx, source.KV, original.revision, func(kv *mvccpb.KeyValue) error {
		key := string(kv.Key)
		if key == storage.MigrationKey || !original.entries[key].due(target, key) {
			return nil
		}
		return b.put(ctx, kv)
	}); err != nil {
		return err
	}
	for key := range target.entries {
		if _, wanted := original.entries[key]; wanted {
			continue
		}
		if err := b.remove(ctx, key); err != nil {
			return err
		}
	}
	return b.flush(ctx)
}

// batch collects writes.
type batch struct {
	client *clientv3.Client
	leases *leases
	puts   []*mvccpb.KeyValue
	gone   []string
	bytes  int
}

func (b *batch) put(ctx context.Context, kv *mvccpb.KeyValue) error {
	size := len(kv.Key) + len(kv.Value)
	if b.bytes+size > batchBytes {
		if err := b.flush(ctx); err != nil {
			return err
		}
	}
	b.puts = append(b.puts, kv)
	b.bytes += size
	return b.full(ctx)
}

func (b *batch) remove(ctx context.Context, key string) error {
	b.gone = append(b.gone, key)
	return b.full(ctx)
}

func (b *batch) full(ctx context.Context) error {
	if len(b.puts)+len(b.gone) < batchKeys {
		return nil
	}
	return b.flush(ctx)
}

// flush writes what was collected, at once.
func (b *batch) flush(ctx context.Context) error {
	defer func() { b.puts, b.gone, b.bytes = nil, nil, 0 }()
	for {
		ops, err := b.operations(ctx)
		if err != nil || len(ops) == 0 {
			return err
		}
		err = failpoint.Around("apiserver/migrate.copy", func() error {
			_, err := b.client.Txn(ctx).Then(ops...).Commit()
			return err
		})
		if !errors.Is(err, rpctypes.ErrLeaseNotFound) {
			return err
		}
		clear(b.leases.alive) // a lease has ended since, and is asked for again
	}
}

// operations leaves out keys whose lease has ended.
func (b *batch) operations(ctx context.Context) (ops []clientv3.Op, err error) {
	for _, key := range b.gone {
		ops = append(ops, clientv3.OpDelete(key))
	}
	for _, kv := range b.puts {
		if kv.Lease != 0 {
			alive, err := b.leases.have(ctx, clientv3.LeaseID(kv.Lease))
			if err != nil {
				return nil, err
			}
			if !alive {
				continue
			}
		}
		ops = append(ops, clientv3.OpPut(string(kv.Key), string(kv.Value),
			clientv3.WithLease(clientv3.LeaseID(kv.Lease))))
	}
	return ops, nil
}

// leases gives the cluster the leases of the store, by the same IDs and with their full time, as a restore does.
type leases struct {
	source clientv3.Lease
	target *clientv3.Client
	raw    pb.LeaseClient // which takes an ID
	alive  map[clientv3.LeaseID]bool
}

// have reports whether a lease lives, in which case the cluster has it.
func (l *leases) have(ctx context.Context, id clientv3.LeaseID) (bool, error) {
	if l.alive == nil {
		l.alive = map[clientv3.LeaseID]bool{}
	}
	if alive, asked := l.alive[id]; asked {
		return alive, nil
	}
	left, err := l.source.TimeToLive(ctx, id)
	if err != nil && !errors.Is(err, rpctypes.ErrLeaseNotFound) {
		return false, fmt.Errorf("asking for the time of a lease: %w", err)
	}
	if err != nil || left.TTL <= 0 {
		l.alive[id] = false
		return false, nil
	}
	if err := l.grant(ctx, id, left.GrantedTTL); err != nil {
		return false, fmt.Errorf("making a lease: %w", err)
	}
	l.alive[id] = true
	return true, nil
}

// grant makes a lease, or begins the time of the one that an earlier run has made again.
func (l *leases) grant(ctx context.Context, id clientv3.LeaseID, seconds int64) error {
	for {
		_, err := l.raw.LeaseGrant(ctx, &pb.LeaseGrantRequest{ID: int64(id), TTL: seconds})
		if !errors.Is(rpctypes.Error(err), rpctypes.ErrLeaseExist) {
			return err
		}
		_, err = l.target.KeepAliveOnce(ctx, id)
		if !errors.Is(err, rpctypes.ErrLeaseNotFound) {
			return err
		}
	}
}

// verifyCopy reads the cluster again, and compares it with the store key by key.
func verifyCopy(ctx context.Context, client *clientv3.Client, original holding) (*copied, error) {
	now, err := hold(ctx, client.KV, 0, nil)
	if err != nil {
		return nil, err
	}
	now = now.without(storage.MigrationKey)
	d := compare(original, now)
	want, got := original.without(d.expired...).content(), now.content()
	if len(d.wrong) > 0 || want.Checksum != got.Checksum {
		first := "none"
		if len(d.wrong) > 0 {
			first = d.wrong[0]
		}
		return nil, fmt.Errorf("the store was not copied as it is, and stays where it was: the cluster holds %s in "+
			"place of %s, and %d keys differ, %q first", got, want, len(d.wrong), first)
	}
	return &copied{content: want, revision: now.revision, expired: len(d.expired)}, nil
}

// compact has the cluster forget all revisions before one, of which clients may have others.
func compact(ctx context.Context, client *clientv3.Client, revision int64) error {
	_, err := client.Compact(ctx, revision)
	if err != nil && !errors.Is(err, rpctypes.ErrCompacted) {
		return fmt.Errorf("compacting the cluster: %w", err)
	}
	return nil
}
