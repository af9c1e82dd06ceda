package podset

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// poison makes every look at a Pod of the index fail.
func (i *Index) poison(uid types.UID) {
	i.pods[uid] = nil
	for _, g := range i.groups {
		if _, ok := g.members[uid]; ok {
			g.members[uid] = member{entry: nil, figures: ^figures(0)}
		}
	}
}

// What a pass asks of its owner's Pods, and a change of one of them, goes through no Pod of another owner, though it
// has the same namespace, node and labels: the cost of a pass does not grow with others' Pods.
func TestReadingAnOwnersPodsTouchesNoOthers(t *testing.T) {
	index := NewIndex()
	onNode := func(pod *corev1.Pod) { pod.Spec.NodeName = "node" }
	for n := range 5 {
		index.Upsert(newPod(types.UID(fmt.Sprint("mine", n)), "me", readySince(start), onNode))
		index.Upsert(newPod(types.UID(fmt.Sprint("other", n)), "other", readySince(start), onNode))
	}
	index.Upsert(newPod("failed", "me", failed))
	index.Upsert(newPod("orphan", "", readySince(start)))
	look := func() []any {
		return []any{
			index.Observe("me", web, start.Add(time.Minute)), index.Count(Owner("me"), Active),
			len(index.Pods(Owner("me"), Active)), len(index.Members(Owner("me"))), index.Unfinished("me"),
			len(index.Made("me")), len(index.Ranked("me", []types.UID{"me"})),
			index.Orphans("default", web.Selector), index.Get("mine1"),
		}
	}
	index.Observe("other", web, start)
	want := look()
	for n := range 5 {
		index.poison(types.UID(fmt.Sprint("other", n)))
	}
	index.Upsert(newPod("mine1", "me", readySince(start), onNode))
	index.Delete(newPod("failed", "me"))
	index.Upsert(newPod("failed", "me", failed))
	if got := look(); !reflect.DeepEqual(got, want) {
		t.Errorf("with the others' Pods out of reach: %v, want %v", got, want)
	}
}
