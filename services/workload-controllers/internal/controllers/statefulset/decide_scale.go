package statefulset

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"keelson.dev/kit/podview"
	"keelson.dev/services/workload-controllers/internal/pace"
)

// lookAgain is when to look again at a claim that blocks a Pod, in case no event comes.
const lookAgain = 5 * time.Second

// scale brings the Pods closer to exactly one per ordinal. It reports whether an update may proceed: in ordered
// mode, once there is nothing left to wait for.
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

// fillAll handles every ordinal that has a Pod, and creates, in order, as many missing Pods as one pass may.
func (w *work) fillAll() {
	next := w.start
	for _, filled := range append(slices.Clip(w.filled), w.end) {
		for next < filled && len(w.plan.Create) < burst {
			w.create(next)
			if next++; w.plan.Problem != nil { // a problem with one Pod below the partition affects all of them
				next = max(next, w.partition())
			}
		}
		if filled < w.end {
			w.fill(filled)
		}
		next = filled + 1
	}
}

// fill makes sure that an ordinal has a running Pod. It reports whether the Pod is available.
func (w *work) fill(ordinal int) bool {
	switch pod := w.pods[ordinal]; {
	case pod == nil:
		w.create(ordinal)
	case podview.IsTerminating(pod): // it is not replaced before it is gone
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

// shrink deletes the surplus Pod with the highest ordinal, once the Pods below it are running and ready and those
// above it are gone. It reports whether there are no surplus Pods. It does not wait for Pods that have ended.
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

// retire deletes a surplus Pod.
func (w *work) retire(pod *corev1.Pod) {
	if podview.IsTerminating(pod) {
		w.await(toGo(pod))
		return
	}
	w.delete(pod, ReasonScaledDown)
}

// replace deletes a Pod that has ended, to free its name for another. Pods that keep failing are recreated no faster
// than the pace for all owners.
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

// create plans the Pod of an ordinal, after its missing claims.
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
