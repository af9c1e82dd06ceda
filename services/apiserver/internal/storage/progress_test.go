package storage

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	genericstorage "k8s.io/apiserver/pkg/storage"
)

// asked counts requests for progress that reach etcd.
type asked struct {
	genericstorage.Interface

	times []time.Time
}

func (a *asked) RequestWatchProgress(context.Context) error {
	a.times = append(a.times, time.Now())
	return nil
}

// However many watch caches wait, etcd is asked ten times a second, since each answer goes to all of them; and whoever
// waits is answered as soon as if it waited alone.
func TestCachesAskForProgressTogether(t *testing.T) {
	for _, caches := range []int{1, 60} {
		synctest.Test(t, func(t *testing.T) {
			etcd, shared := &asked{}, &progress{now: time.Now}
			ctx, stop := context.WithCancel(t.Context())
			for i := range caches {
				store := progressing{etcd, shared}
				go func() {
					time.Sleep(time.Duration(i) * time.Millisecond)
					for ctx.Err() == nil {
						if err := store.RequestWatchProgress(ctx); err != nil {
							t.Error(err)
						}
						time.Sleep(100 * time.Millisecond)
					}
				}()
			}
			time.Sleep(10*time.Second - 50*time.Millisecond)
			stop()
			synctest.Wait()
			if n := len(etcd.times); n < 99 || n > 100 {
				t.Errorf("%d caches: etcd was asked %d times in 10 s, want 100", caches, n)
			}
			for i := 1; i < len(etcd.times); i++ {
				if gap := etcd.times[i].Sub(etcd.times[i-1]); gap > 200*time.Millisecond {
					t.Errorf("%d caches: nobody asked for %v", caches, gap)
				}
			}
			time.Sleep(time.Second)
		})
	}
}
