package podworker

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

func TestOverdue(t *testing.T) {
	now := time.Unix(10_000, 0)
	for _, row := range []struct {
		name   string
		oldest time.Time
		want   error
	}{
		{"none", time.Time{}, nil},
		{"as long as it may take", now.Add(-5 * time.Minute), nil},
		{"longer", now.Add(-5*time.Minute - 1),
			errors.New("sync loop took longer than expected: a Pod has been worked on since 1970-01-01T02:41:39Z")},
	} {
		if got := overdue(row.oldest, now); fmt.Sprint(got) != fmt.Sprint(row.want) {
			t.Errorf("%s: %v, want %v", row.name, got, row.want)
		}
	}
}

// A pass that does not end is reported even if those of other Pods do end, and no longer once it has ended. Pods
// that only wait are not overdue, however long.
func TestSyncLoop(t *testing.T) {
	inWorld(t, func(w *world) {
		w.put(newPod())
		w.after(time.Hour)
		if err := w.pool.SyncLoop(); err != nil {
			t.Errorf("while nothing happens: %v", err)
		}
		w.runtime.SetDelay("PodState", 10*time.Minute)
		w.pool.Wake("u1")
		w.after(5 * time.Minute)
		if err := w.pool.SyncLoop(); err != nil {
			t.Errorf("after 5 minutes: %v", err)
		}
		w.after(time.Second)
		if err := w.pool.SyncLoop(); err == nil {
			t.Error("a pass of more than 5 minutes is not seen")
		}
		w.runtime.SetDelay("PodState", 0)
		w.after(5 * time.Minute)
		if err := w.pool.SyncLoop(); err != nil {
			t.Errorf("after its end: %v", err)
		}
	})
}
