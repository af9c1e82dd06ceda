package storage

import (
	"context"
	"errors"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/klog/v2"

	"keelson.dev/kit/contained"
)

const (
	// growthLook is how often the store is asked how large it is.
	growthLook = 5 * time.Second
	// mostGrowth is by how much it may grow until old versions are compacted before their time, an eighth of what it
	// may have: a client that overwrites large objects as fast as the disk takes it would fill it within minutes, and
	// then no client could write.
	mostGrowth = quotaBytes / 8
)

// growth compacts old versions as soon as the store has grown by much, instead of at the next regular time.
type growth struct {
	client *clientv3.Client
	most   int64

	// least is the smallest that the store was since it was compacted here.
	least int64
	// before is the revision at the last look: only lists in pages need an older one, and they start over.
	before int64
}

// watch looks until ctx ends.
func (g *growth) watch(ctx context.Context, every time.Duration) {
	look := time.NewTicker(every)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
			g.look(ctx)
		}
	}
}

// look compacts the store if it is due.
func (g *growth) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, healthProbeLimit)
	defer cancel()
	endpoint := "" // of the in-process client
	if all := g.client.Endpoints(); len(all) > 0 {
		endpoint = all[0]
	}
	status, err := g.client.Status(ctx, endpoint)
	if err != nil {
		return // the store's health tells
	}
	to := g.due(status.DbSizeInUse, status.Header.Revision)
	if to == 0 {
		return
	}
	if _, err := g.client.Compact(ctx, to); err != nil && !errors.Is(err, rpctypes.ErrCompacted) {
		klog.ErrorS(err, "The store has grown and could not be compacted", "bytes", status.DbSizeInUse)
		return
	}
	klog.InfoS("The store has grown and was compacted before its time", "bytes", status.DbSizeInUse, "revision", to)
}

// due is up to which revision to compact a store that has so many bytes in use at a revision; zero if that has time.
func (g *growth) due(inUse, revision int64) (to int64) {
	before := g.before
	g.before = revision
	if g.least == 0 || inUse < g.least {
		g.least = inUse
	}
	if inUse-g.least < g.most || before == 0 {
		return 0
	}
	g.least = inUse
	return before
}

// followGrowth begins to look, until the function that it returns is called.
func followGrowth(client *clientv3.Client) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	g := &growth{client: client, most: mostGrowth}
	contained.Go("following the growth of the store", func() { g.watch(ctx, growthLook) }, nil)
	return cancel
}
