package feed

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

var forbidden = apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("no rule allows it"))

// api lists and watches Pods, or refuses to.
type api struct {
	mu      sync.Mutex // guards what follows
	refuses error
	pods    []corev1.Pod
	watches []*watch.RaceFreeFakeWatcher
}

func (a *api) List(context.Context, metav1.ListOptions) (*corev1.PodList, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.refuses != nil {
		return nil, a.refuses
	}
	return &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: slices.Clone(a.pods)}, nil
}

func (a *api) Watch(context.Context, metav1.ListOptions) (watch.Interface, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.refuses != nil {
		return nil, a.refuses
	}
	watcher := watch.NewRaceFreeFake()
	a.watches = append(a.watches, watcher)
	return watcher, nil
}

// IsWatchListSemanticsUnSupported says that a watch begins with no objects.
func (a *api) IsWatchListSemanticsUnSupported() bool { return true }

func (a *api) change(do func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	do()
}

func podNamed(name, node string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, ResourceVersion: "2"},
		Spec: corev1.PodSpec{NodeName: node}}
}

// podRow is a row that shows where a Pod runs.
func podRow(p *corev1.Pod) (Row, error) {
	return Row{Key: "n/" + p.Name, Namespace: "n", Content: fmt.Appendf(nil, "%q", p.Spec.NodeName)}, nil
}

// A watch gives the rows of what is there and of what changes. While it is refused, the page is told so, and it goes on
// by itself when it is no longer.
func TestWatch(t *testing.T) {
	// One of them waits until a millisecond after the last error, which in the bubble is years away.
	handlers := utilruntime.ErrorHandlers
	utilruntime.ErrorHandlers = nil
	defer func() { utilruntime.ErrorHandlers = handlers }()
	synctest.Test(t, func(t *testing.T) {
		a := &api{refuses: forbidden, pods: []corev1.Pod{*podNamed("a", "")}}
		ctx, cancel := context.WithCancel(t.Context())
		hub := NewHub(ctx)
		hub.Add("pods", 0, Watch(Watched[*corev1.PodList]{Client: a, API: a, What: "pods of all namespaces"}, podRow))
		defer func() { cancel(); hub.Wait() }()
		p := follow(hub.Topic("pods"), "", 10)
		p.check(t, "refused", "whole, loading, problem you may not list and watch the pods of all namespaces")
		a.change(func() { a.refuses = nil })
		time.Sleep(time.Minute) // the reflector tries again after less
		synctest.Wait()
		p.check(t, "allowed", `whole, n/a=""`)
		a.watches[0].Modify(podNamed("a", "node-1"))
		a.watches[0].Add(podNamed("b", ""))
		synctest.Wait()
		p.check(t, "changes", `n/a="node-1", n/b=""`)
		a.watches[0].Delete(podNamed("b", ""))
		synctest.Wait()
		p.check(t, "an end", "-n/b")
		a.change(func() { a.refuses = errors.New("no route") })
		a.watches[0].Stop()
		synctest.Wait()
		p.check(t, "the connection is lost", "problem the apiserver does not answer: no route")
		a.change(func() { a.refuses, a.pods = nil, []corev1.Pod{*podNamed("c", "")} })
		time.Sleep(time.Minute)
		synctest.Wait()
		p.check(t, "it is back", `n/c="", -n/a`)
	})
}

func TestDescribe(t *testing.T) {
	group := schema.GroupResource{Resource: "pods"}
	for _, row := range []struct {
		err  error
		want string
	}{
		{nil, ""},
		{apierrors.NewResourceExpired("too old"), ""},
		{&apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonGone}}, ""},
		{forbidden, "you may not list and watch the pods of namespace n"},
		{fmt.Errorf("listing: %w", forbidden), "you may not list and watch the pods of namespace n"},
		{apierrors.NewUnauthorized("no"), "the apiserver does not accept the credentials of the kubeconfig"},
		{apierrors.NewNotFound(group, ""), "the API does not serve the pods of namespace n"},
		{errors.New("refused"), "the apiserver does not answer: refused"},
	} {
		if got := describe(row.err, "pods of namespace n"); got != row.want {
			t.Errorf("%v: %q, want %q", row.err, got, row.want)
		}
	}
}
