package statefulset

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"keelson.dev/kit/podview"
	"keelson.dev/services/workload-controllers/internal/pace"
)

// lookAgain is when to look again at a claim that is in the way of a Pod, should no event come.
const lookAgain = 5 * time.Second

// scale brings the Pods nearer to one for each ordinal and no other. It says whether an update may go on: in order that
// is once nothing is left to wait for.
func (w *work) scale() bool {
	if w.set.Spec.PodManagementPolicy == appsv1.ParallelPodManagement {
		w.fillAll()
		for _, pod := range w.surplus {
			w.retire(pod)
		}
		return true
	}
	for ordinal := w.start; ordinal < w.end; ordinal++ {
		if !w.fill(ordinal) {
			return false
		}
	}
	return w.shrink()
}

// fillAll sees to every ordinal that has a Pod, and makes as many of the missing Pods as one pass may, in order.
func (w *work) fillAll() {
	next := w.start
	for _, filled := range append(slices.Clip(w.filled), w.end) {
		for next < filled && len(w.plan.Create) < burst {
			w.create(next)
			if next++; w.plan.Problem != nil { // what keeps one Pod below the partition from being made keeps all there
				next = max(next, w.partition())
			}
		}
		if filled < w.end {
			w.fill(filled)
		}
		next = filled + 1
	}
}

// fill sees to it that an ordinal has a Pod that runs. It says whether it is available.
func (w *work) fill(ordinal int) bool {
	switch pod := w.pods[ordinal]; {
	case pod == nil:
		w.create(ordinal)
	case podview.IsTerminating(pod): // nothing takes its place until it has gone
		w.await(toGo(pod))
	case podview.IsTerminal(pod):
		w.replace(pod)
	case w.isAvailable(pod):
		return true
	default:
		w.await(toBeAvailable(w.set, pod))
		w.recover(ordinal, pod)
	}
	return false
}

// shrink ends the surplus Pod with the highest ordinal, once those below it run and are ready and those above it have
// gone. It says whether there is none. One that has ended is no predecessor to wait for.
func (w *work) shrink() bool {
	if len(w.surplus) == 0 {
		return true
	}
	for _, lower := range w.surplus[1:] {
		if !podview.IsTerminal(lower) && !w.isRunningAndReady(lower) {
			w.await(toBeAvailable(w.set, lower))
			return false
		}
	}
	w.retire(w.surplus[0])
	return false
}

// retire ends a surplus Pod.
func (w *work) retire(pod *corev1.Pod) {
	if podview.IsTerminating(pod) {
		w.await(toGo(pod))
		return
	}
	w.delete(pod, ReasonScaledDown)
}

// replace ends a Pod that has ended, so that another can have its name. Pods that keep failing are made no faster than
// the pace of all owners.
func (w *work) replace(pod *corev1.Pod) {
	if pod.Status.Phase == corev1.PodFailed {
		made := make([]pace.Pod, 0, len(w.in.Pods))
		for _, other := range w.in.Pods {
			made = append(made, pace.Pod{Created: other.CreationTimestamp.Time, Phase: other.Status.Phase})
		}
		if allowed, due := pace.Allow(made, 1, w.in.Now); allowed == 0 {
			w.await(toBeReplaced(pod, due))
			w.wakeAt(due)
			return
		}
	}
	w.delete(pod, ReasonEnded)
}

// create makes the Pod of an ordinal, after the claims that it lacks.
func (w *work) create(ordinal int) {
	revision, template, err := w.revisionFor(ordinal)
	if err != nil {
		w.plan.Problem = err
		return
	}
	creation := Creation{Pod: newPod(w.set, ordinal, revision, template)}
	for i := range w.set.Spec.VolumeClaimTemplates {
		existing := w.in.Claims[claimName(w.set, i, ordinal)]
		if existing == nil {
			creation.Claims = append(creation.Claims, NewClaim{newClaim(w.set, i, ordinal), creation.Pod.Name})
		} else if w.isOnItsWayOut(existing, nil) {
			w.await(claimToGo(existing))
			w.wakeAt(w.in.Now.Add(lookAgain))
			return
		}
	}
	w.plan.Create = append(w.plan.Create, creation)
}

func (w *work) delete(pod *corev1.Pod, reason Reason) {
	if len(w.plan.Delete) == burst {
		return
	}
	w.deleted[pod.Name] = true
	w.plan.Delete = append(w.plan.Delete, Deletion{Pod: pod, Reason: reason})
}
