package statefulset

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"keelson.dev/kit/podview"
	"keelson.dev/services/workload-controllers/internal/claim"
)

// ordinalOf returns the ordinal in the name of a Pod of the set; false if no Pod of the set can have the name.
func ordinalOf(set *appsv1.StatefulSet, name string) (int, bool) {
	digits, ok := strings.CutPrefix(name, set.Name+"-")
	if !ok {
		return 0, false
	}
	// The first ordinal and the number of Pods may both be the largest 31-bit number.
	ordinal, err := strconv.ParseUint(digits, 10, 32)
	if err != nil || podName(set, int(ordinal)) != name {
		return 0, false
	}
	return int(ordinal), true
}

// ordinals returns the first ordinal of the set and the one after its last.
func ordinals(set *appsv1.StatefulSet) (start, end int) {
	if set.Spec.Ordinals != nil {
		start = int(set.Spec.Ordinals.Start)
	}
	return start, start + replicasOf(set)
}

func podName(set *appsv1.StatefulSet, ordinal int) string {
	return set.Name + "-" + strconv.Itoa(ordinal)
}

// settle returns the Pods to adopt, the Pods to release, and the Pods that the set owns.
func settle(owner claim.Owner, in Input) (adopt, release, mine []*corev1.Pod) {
	for _, pod := range in.Orphans {
		if _, ok := ordinalOf(in.Set, pod.Name); ok && !owner.Deleting {
			adopt = append(adopt, pod)
		}
	}
	for _, pod := range in.Pods {
		_, named := ordinalOf(in.Set, pod.Name)
		switch {
		case named && owner.Selector.Matches(labels.Set(pod.Labels)):
			mine = append(mine, pod)
		case !owner.Deleting && podview.IsActive(pod):
			release = append(release, pod)
		}
	}
	return adopt, release, mine
}

// place sorts the set's Pods by ordinal.
func (w *work) place(pods []*corev1.Pod) {
	w.start, w.end = ordinals(w.set)
	w.pods = make(map[int]*corev1.Pod, len(pods))
	of := make(map[*corev1.Pod]int, len(pods))
	for _, pod := range pods {
		ordinal, _ := ordinalOf(w.set, pod.Name)
		of[pod] = ordinal
		if w.isAskedFor(ordinal) {
			w.pods[ordinal] = pod
		} else {
			w.surplus = append(w.surplus, pod)
		}
	}
	w.filled = slices.Sorted(maps.Keys(w.pods))
	slices.SortFunc(w.surplus, func(a, b *corev1.Pod) int { return cmp.Compare(of[b], of[a]) })
}

// isAskedFor reports whether the set wants a Pod of the ordinal.
func (w *work) isAskedFor(ordinal int) bool { return ordinal >= w.start && ordinal < w.end }

// isRunningAndReady reports whether a Pod counts as ready. A Pod that is being deleted or that the plan deletes does
// not.
func (w *work) isRunningAndReady(pod *corev1.Pod) bool {
	return pod != nil && pod.Status.Phase == corev1.PodRunning && !podview.IsTerminating(pod) && podview.IsReady(pod) &&
		!w.deleted[pod.Name]
}

// isAvailable reports whether a Pod has been ready for as long as the set asks.
func (w *work) isAvailable(pod *corev1.Pod) bool {
	return w.isRunningAndReady(pod) && podview.IsAvailable(pod, w.minReady, w.in.Now)
}
