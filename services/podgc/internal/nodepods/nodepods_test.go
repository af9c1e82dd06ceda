package nodepods

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func names(pods []*corev1.Pod) string {
	var all []string
	for _, pod := range pods {
		all = append(all, string(pod.UID)+pod.ResourceVersion)
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// The index finds what going through all Pods finds, whatever came before, and keeps nothing of nothing. What it
// hands out stays as it is.
func TestTheIndexFindsWhatThereIs(t *testing.T) {
	known := map[string]*corev1.Node{"n0": {}, "n1": {}}
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		var index Index
		there := map[types.UID]*corev1.Pod{}
		change := func(uid types.UID, now *corev1.Pod) {
			index.Replace(there[uid], now)
			if there[uid] = now; now == nil {
				delete(there, uid)
			}
		}
		for step := range 40 {
			uid := types.UID(fmt.Sprint("u", r.IntN(6)))
			now := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: uid, ResourceVersion: fmt.Sprint("v", step)},
				Spec: corev1.PodSpec{NodeName: []string{"", "n0", "n1", "n2", "n3"}[r.IntN(5)]}}
			if r.IntN(4) == 0 {
				now = nil
			}
			before := index.On("n0")
			had := names(before)
			change(uid, now)
			if has := names(before); has != had {
				t.Fatalf("seed %d: what was handed out as %s is %s now", seed, had, has)
			}
			on, elsewhere := map[string][]*corev1.Pod{}, []*corev1.Pod(nil)
			for _, pod := range there {
				node := pod.Spec.NodeName
				on[node] = append(on[node], pod)
				if node != "" && known[node] == nil {
					elsewhere = append(elsewhere, pod)
				}
			}
			for _, node := range []string{"n0", "n1", "n2", "n3"} {
				if got, want := names(index.On(node)), names(on[node]); got != want {
					t.Fatalf("seed %d: on %s are %s, want %s", seed, node, got, want)
				}
			}
			if got, want := names(index.Elsewhere(known)), names(elsewhere); got != want {
				t.Fatalf("seed %d: elsewhere are %s, want %s", seed, got, want)
			}
		}
		for uid := range there {
			index.Replace(there[uid], nil)
		}
		if len(index.nodes) > 0 {
			t.Fatalf("seed %d: %v is kept of nothing", seed, index.nodes)
		}
	}
}
