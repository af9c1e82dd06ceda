package storage

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

func TestGrowthIsDue(t *testing.T) {
	g := &growth{most: 100}
	for i, row := range []struct{ inUse, revision, want int64 }{
		{50, 1, 0},
		{149, 2, 0},
		{150, 3, 2},
		{180, 4, 0}, // what is freed takes its time
		{60, 5, 0},
		{159, 6, 0},
		{160, 7, 6},
		{260, 8, 7}, // it grows faster than is freed
		{300, 9, 0},
	} {
		if got := g.due(row.inUse, row.revision); got != row.want {
			t.Errorf("row %d: compacted to %d, want %d", i, got, row.want)
		}
	}
	if got := (&growth{most: 0}).due(1000, 1); got != 0 {
		t.Errorf("at first sight compacted to %d", got)
	}
}

// TestAStoreThatGrowsIsCompacted: a client that overwrites a large object again and again does not fill the store:
// versions that no client needs are compacted long before the next regular time.
func TestAStoreThatGrowsIsCompacted(t *testing.T) {
	e, err := StartEmbedded(t.Context(), t.TempDir(), zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	client := e.Client().Client
	ctx, cancel := context.WithCancel(t.Context())
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		(&growth{client: client, most: 8 << 20}).watch(ctx, 20*time.Millisecond)
	}()
	defer func() { cancel(); <-watched }()
	first, err := client.Put(t.Context(), "key", "first")
	if err != nil {
		t.Fatal(err)
	}
	large := strings.Repeat("x", 1<<20)
	for range 500 {
		if _, err := client.Put(t.Context(), "key", large); err != nil {
			t.Fatal(err)
		}
		_, err := client.Get(t.Context(), "key", clientv3.WithRev(first.Header.Revision))
		if errors.Is(err, rpctypes.ErrCompacted) {
			return
		}
	}
	t.Error("the first version is still there after 500 MiB")
}
