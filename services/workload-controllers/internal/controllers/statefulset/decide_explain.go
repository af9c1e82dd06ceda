package statefulset

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"keelson.dev/kit/explain"
	"keelson.dev/kit/podview"
)

// await records why the pass goes no further.
func (w *work) await(wait explain.Wait) { w.plan.Waits = append(w.plan.Waits, wait) }

func toGo(pod *corev1.Pod) explain.Wait {
	return explain.Wait{Since: pod.DeletionTimestamp.Time, Reason: "Terminating", For: "Pod " + pod.Name +
		" to be gone",
		Ends: "its node has ended it: no other has its name before"}
}

func toBeAvailable(set *appsv1.StatefulSet, pod *corev1.Pod) explain.Wait {
	wait := explain.Wait{Since: pod.CreationTimestamp.Time, Reason: "NotAvailable",
		For: "Pod " + pod.Name + " to be available", Ends: "it is ready: keel explain pod tells more"}
	if ready := podview.Condition(pod, corev1.PodReady); ready != nil {
		wait.Since = ready.LastTransitionTime.Time
		if at, holds := podview.AvailableAt(pod, minReadyOf(set)); holds {
			wait.Ends = "it has been ready for spec.minReadySeconds, at " + explain.At(at)
		}
	}
	if set.Spec.PodManagementPolicy != appsv1.ParallelPodManagement {
		wait.Ends += "; in order, the Pods after it wait too"
	}
	return wait
}

func toBeReplaced(pod *corev1.Pod, due time.Time) explain.Wait {
	return explain.Wait{Reason: "FailedPod", For: "the time to replace Pod " + pod.Name +
		", since its Pods keep failing",
		Ends: "it is " + explain.At(due)}
}

func claimToGo(claim *corev1.PersistentVolumeClaim) explain.Wait {
	wait := explain.Wait{Reason: "ClaimTerminating", For: "PersistentVolumeClaim " + claim.Name + " to be gone",
		Ends: "its finalizers are gone, or its owner is not deleted after all"}
	if claim.DeletionTimestamp != nil {
		wait.Since = claim.DeletionTimestamp.Time
	}
	return wait
}

// account explains a decision.
func account(in Input, plan Plan) explain.Account {
	a := explain.Account{Waits: plan.Waits}
	set, status := in.Set, &plan.Status
	a.Do(len(plan.Adopt), "adopts %s", explain.Count(len(plan.Adopt), "Pod"))
	a.Do(len(plan.Release), "releases %s", explain.Count(len(plan.Release), "Pod"))
	a.Do(len(plan.Storage), "creates %s for Pods that exist", explain.Count(len(plan.Storage), "claim"))
	for _, creation := range plan.Create {
		a.Do(1, "creates Pod %s", creation.Pod.Name)
	}
	for _, deletion := range plan.Delete {
		a.Do(1, "deletes Pod %s (%s)", deletion.Pod.Name, deletion.Reason)
	}
	if set.DeletionTimestamp != nil {
		a.Wait(explain.Wait{Since: set.DeletionTimestamp.Time, Reason: "Deleting", For: "its deletion to finish",
			Ends: "its finalizers are gone"})
		return a
	}
	if plan.Problem != nil {
		a.Wait(explain.Wait{Reason: "Problem", For: "somebody to look: " + plan.Problem.Error(),
			Ends: "that is put right"})
	}
	if old := int(status.Replicas - status.UpdatedReplicas); old > 0 {
		a.Wait(outdated(set, old))
	}
	a.Settled = explain.Count(int(status.AvailableReplicas), "Pod") + " available, each of the current template"
	return a
}

// outdated describes the wait for Pods of an earlier revision.
func outdated(set *appsv1.StatefulSet, count int) explain.Wait {
	wait := explain.Wait{Reason: "RollingUpdate", For: explain.Count(count, "Pod") + " of an earlier revision to go",
		Ends: "the Pods that are not available are, so that maxUnavailable leaves room"}
	strategy := &set.Spec.UpdateStrategy
	switch rolling := strategy.RollingUpdate; {
	case strategy.Type == appsv1.OnDeleteStatefulSetStrategyType:
		wait.Reason, wait.Ends = "OnDelete", "somebody deletes them: the update strategy is OnDelete"
	case rolling != nil && rolling.Partition != nil && *rolling.Partition > 0:
		wait.Reason, wait.Ends = "Partition", fmt.Sprintf(
			"those from ordinal %d on are available, and the partition is lowered for the others", *rolling.Partition)
	}
	return wait
}
