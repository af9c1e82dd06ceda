package podset

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func object(name string, generation int64) *metav1.ObjectMeta {
	return &metav1.ObjectMeta{Namespace: "default", Name: name, Generation: generation}
}

func selecting(key, value string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
}

// A Service or a budget has the Pods that its selector matches, as it is now and as they are now.
func TestSelections(t *testing.T) {
	index := NewIndex()
	budgets := NewSelections(index)
	check := func(when, name string, want ...string) {
		t.Helper()
		if got := names(index.Pods(budgets.Key("default", name), Active)); !slices.Equal(got, want) {
			t.Errorf("%s: %s has %v, want %v", when, name, got, want)
		}
	}
	index.Upsert(newPod("a", "o"))
	index.Upsert(newPod("b", "", relabelled))
	elsewhere := newPod("c", "o")
	elsewhere.Namespace = "other"
	index.Upsert(elsewhere)
	budgets.Put(object("web", 1), selecting("app", "web"))
	budgets.Put(object("all", 1), &metav1.LabelSelector{})
	budgets.Put(object("none", 1), nil)
	check("with Pods that were there before", "web", "a")
	check("of an empty selector", "all", "a", "b")
	check("without a selector", "none")

	index.Upsert(newPod("d", "o", readySince(start)))
	check("with a Pod that came after", "web", "a", "d")
	if got := index.Count(budgets.Key("default", "web"), Ready); got != 1 {
		t.Errorf("%d ready Pods, want 1", got)
	}
	index.Upsert(newPod("d", "o", relabelled))
	check("without a Pod that was relabelled", "web", "a")
	if got, want := budgets.Matching(newPod("x", "")), []string{"all", "web"}; !slices.Equal(got, want) {
		t.Errorf("a Pod concerns %v, want %v", got, want)
	}

	budgets.Put(object("web", 2), selecting("app", "debug"))
	check("of another selector", "web", "b", "d")
	budgets.Put(object("web", 3), &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: "app", Operator: "Wrong"}}})
	check("of a selector that cannot be read", "web")
	budgets.Put(object("web", 4), selecting("app", "web"))
	check("of one that can be read again", "web", "a")
	budgets.Remove(object("web", 4))
	check("of a budget that is gone", "web")
	budgets.Remove(object("never seen", 1))
	index.Upsert(newPod("a", "o"))
	check("of a budget that is gone, after a change of a Pod", "web")
	check("of another one", "all", "a", "b", "d")
}

// An event about an object that changes nothing of its selector goes through no Pods.
func TestTheSameSelectorCostsNothing(t *testing.T) {
	index := NewIndex()
	services := NewSelections(index)
	index.Upsert(newPod("a", "o"))
	service := object("web", 0) // Services count no generations
	services.Put(service, selecting("app", "web"))
	before := index.groups[services.Key("default", "web")]
	services.Put(service, selecting("app", "web"))
	if after := index.groups[services.Key("default", "web")]; after == nil || after != before {
		t.Error("the group was made again")
	}
}

// All of it may be used at once; the race detector looks on.
func TestConcurrentUse(t *testing.T) {
	index := NewIndex()
	services := NewSelections(index)
	var done sync.WaitGroup
	for worker := range 4 {
		done.Go(func() {
			for n := range 50 {
				uid := types.UID(fmt.Sprint(worker, "-", n%7))
				index.Upsert(newPod(uid, "o", readySince(start)))
				services.Put(object(fmt.Sprint(n%3), int64(n)), selecting("app", []string{"web", "debug"}[n%2]))
				services.Matching(newPod(uid, "o"))
				index.Observe("o", web, start)
				if n%5 == 0 {
					index.Delete(newPod(uid, "o"))
					services.Remove(object(fmt.Sprint(n%3), int64(n)))
				}
			}
		})
	}
	done.Wait()
	if got, want := index.Count(Owner("o"), Active), len(index.pods); got != want {
		t.Errorf("%d Pods counted of %d", got, want)
	}
}
