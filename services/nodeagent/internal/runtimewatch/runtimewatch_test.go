package runtimewatch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/types"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"keelson.dev/services/nodeagent/internal/observed"
	"keelson.dev/services/nodeagent/internal/runtime/fake"
)

type workers struct {
	mu      sync.Mutex // guards all fields below
	known   map[types.UID]bool
	woken   []types.UID
	adopted []types.UID
	listed  []string
	// relists counts the reported lists by result.
	relists map[string]int
}

func (w *workers) relisted(began time.Time, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.relists[fmt.Sprint(ok, " ", time.Since(began))]++
}

func (w *workers) Listed(pods []observed.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.listed = nil
	for i := range pods {
		w.listed = append(w.listed, pods[i].UID)
	}
}

func (w *workers) Wake(uid types.UID) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.woken = append(w.woken, uid)
	return w.known[uid]
}

func (w *workers) Knows(uid types.UID) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.known[uid]
}

func (w *workers) Adopt(uid types.UID, _, _ string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.known[uid] = true
	w.adopted = append(w.adopted, uid)
}

// wokenSince returns the Pods that were woken since the last call.
func (w *workers) wokenSince() []types.UID {
	w.mu.Lock()
	defer w.mu.Unlock()
	woken := w.woken
	w.woken = nil
	return woken
}

func observing(t *testing.T, test func(*fake.Runtime, *workers)) {
	watching(t, func(r *fake.Runtime, w *workers, o *Watcher) {
		o.Settle()
		synctest.Wait()
		test(r, w)
	})
}

// watching runs a test with a watcher whose workers do not know all Pods yet.
func watching(t *testing.T, test func(*fake.Runtime, *workers, *Watcher)) {
	synctest.Test(t, func(t *testing.T) {
		r, w := fake.New("image:1"), &workers{known: map[types.UID]bool{"known": true},
			relists: map[string]int{}}
		sandbox(t, r, "known")
		sandbox(t, r, "orphan")
		o := New(Config{Runtime: r, Workers: w, Log: zap.NewNop(), Changed: func() {}, Relisted: w.relisted,
			Leftovers: func() ([]types.UID, error) { return []types.UID{"folder", "known"}, nil }})
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { o.Run(ctx) })
		synctest.Wait()
		test(r, w, o)
		cancel()
		running.Wait()
		synctest.Wait()
	})
}

func sandbox(t *testing.T, r *fake.Runtime, uid string) {
	t.Helper()
	if _, err := r.RunSandbox(t.Context(), &cri.PodSandboxConfig{Metadata: &cri.PodSandboxMetadata{Uid: uid,
		Name: uid}}, ""); err != nil {
		t.Fatal(err)
	}
}

// SAF-167: Pods that the API has forgotten are found, with containers or without.
func TestFindsWhatIsForgotten(t *testing.T) {
	observing(t, func(_ *fake.Runtime, w *workers) {
		slices.Sort(w.adopted)
		if !slices.Equal(w.adopted, []types.UID{"folder", "orphan"}) {
			t.Errorf("adopted %v, want the forgotten ones", w.adopted)
		}
	})
}

// POD-067: before all Pods are known, for example without an API, Pods are watched and none counts as forgotten.
func TestWatchesBeforeAllIsKnown(t *testing.T) {
	watching(t, func(r *fake.Runtime, w *workers, o *Watcher) {
		<-time.After(2 * relistEvery)
		synctest.Wait()
		w.wokenSince()
		r.LoseSandboxes("known")
		synctest.Wait()
		if len(w.adopted) > 0 || o.Complete() || !slices.Contains(w.wokenSince(), "known") {
			t.Errorf("adopted %v, complete %v, want none, and an event to wake its Pod", w.adopted, o.Complete())
		}
		if slices.Sort(w.listed); !slices.Equal(w.listed, []string{"known", "orphan"}) {
			t.Errorf("the workers were shown %v, want all that the runtime has", w.listed)
		}
		o.Settle()
		synctest.Wait()
		if len(w.adopted) != 2 || !o.Complete() {
			t.Errorf("adopted %v, complete %v, want those that are forgotten at once", w.adopted, o.Complete())
		}
	})
}

func TestEventsWakeAtOnce(t *testing.T) {
	observing(t, func(r *fake.Runtime, w *workers) {
		w.wokenSince()
		r.LoseSandboxes("known")
		synctest.Wait()
		if !slices.Contains(w.wokenSince(), "known") {
			t.Error("an event woke nobody")
		}
	})
}

// Each list is reported: how long it took, and whether the runtime answered.
func TestListsAreTold(t *testing.T) {
	observing(t, func(r *fake.Runtime, w *workers) {
		<-time.After(relistEvery)
		synctest.Wait()
		r.Fail("ListPods", errors.New("gone"))
		<-time.After(relistEvery)
		synctest.Wait()
		w.mu.Lock()
		defer w.mu.Unlock()
		if got := fmt.Sprint(w.relists); got != "map[false 0s:1 true 0s:3]" {
			t.Errorf("told of %s", got)
		}
	})
}

// The next list compensates for lost events.
func TestRelistWakes(t *testing.T) {
	observing(t, func(r *fake.Runtime, w *workers) {
		r.Fail("Watch", errors.New("gone"))
		w.wokenSince()
		<-time.After(relistEvery + time.Millisecond)
		synctest.Wait()
		if woken := w.wokenSince(); len(woken) != 0 {
			t.Errorf("nothing changed, but %v was woken", woken)
		}
		if err := r.RemoveSandbox(t.Context(), "sandbox-1"); err != nil {
			t.Fatal(err)
		}
		w.wokenSince() // as if the event had been lost
		<-time.After(relistEvery + time.Millisecond)
		synctest.Wait()
		if !slices.Contains(w.wokenSince(), "known") {
			t.Error("a change without an event woke nobody")
		}
	})
}
