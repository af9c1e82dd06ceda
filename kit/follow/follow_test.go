package follow_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"keelson.dev/kit/follow"
)

// server is an API whose watches can be interrupted.
type server struct {
	mu      sync.Mutex // guards what follows
	version int
	pods    []corev1.Pod
	watch   *watch.RaceFreeFakeWatcher
}

func (s *server) ListWithContext(context.Context, metav1.ListOptions) (runtime.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: fmt.Sprint(s.version)},
		Items: slices.Clone(s.pods)}, nil
}

func (s *server) WatchWithContext(context.Context, metav1.ListOptions) (watch.Interface, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watch = watch.NewRaceFreeFake()
	return s.watch, nil
}

func (s *server) List(options metav1.ListOptions) (runtime.Object, error) {
	return s.ListWithContext(context.Background(), options)
}

func (s *server) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return s.WatchWithContext(context.Background(), options)
}

func (s *server) IsWatchListSemanticsUnSupported() bool { return true }

// interrupted sets what happens while there is no watch: the next list shows these Pods.
func (s *server) interrupted(pods ...corev1.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	s.pods = pods
	s.watch.Error(&metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonExpired, Code: 410})
}

func pod(name string, uid types.UID) corev1.Pod {
	return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: uid, ResourceVersion: string(uid)}}
}

// What happens while a watch is interrupted is reported as it was, even when a name has come to mean another object.
func TestAnInterruptedWatchHidesNoObjectsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{pods: []corev1.Pod{pod("a", "1"), pod("b", "2")}}
		var mu sync.Mutex // guards told
		var told []string
		tell := func(what string) func(*corev1.Pod) {
			return func(p *corev1.Pod) {
				mu.Lock()
				defer mu.Unlock()
				told = append(told, fmt.Sprint(what, " ", p.Name, " ", p.UID))
			}
		}
		informer := cache.NewSharedIndexInformer(s, &corev1.Pod{}, 0, cache.Indexers{})
		if _, err := informer.AddEventHandler(follow.Handler(tell("set"), tell("gone"))); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); informer.RunWithContext(ctx) }()
		defer func() { cancel(); <-done }()
		check := func(what string, want ...string) {
			t.Helper()
			if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
				t.Fatal("the informer does not list")
			}
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			slices.Sort(told)
			if !slices.Equal(told, want) {
				t.Errorf("%s: told %q, want %q", what, told, want)
			}
			told = nil
		}
		check("at the start", "set a 1", "set b 2")
		s.watch.Modify(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "1", ResourceVersion: "5"}})
		check("a change", "set a 1")
		s.interrupted(pod("a", "3"))
		time.Sleep(time.Minute) // the informer's back-off before it lists again
		check("an end, and an end with a new beginning", "gone a 1", "gone b 2", "set a 3")
		s.watch.Delete(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "3", ResourceVersion: "9"}})
		check("an end that was seen", "gone a 3")
	})
}
