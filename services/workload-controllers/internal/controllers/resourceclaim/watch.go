package resourceclaim

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"keelson.dev/kit/controller"
	"keelson.dev/kit/podview"
	"keelson.dev/services/workload-controllers/internal/storeindex"
	"keelson.dev/services/workload-controllers/internal/wake"
)

// claimPrefix begins the name of each request for a pass over a claim; no Pod's name begins with it.
const claimPrefix = "claim/"

func claimRequest(namespace, name string) reconcile.Request {
	return wake.Request(namespace, claimPrefix+name)
}

// onPod wakes up a Pod that may lack a claim, and the claims of a Pod that has ended.
func (c *Controller) onPod() handler.TypedFuncs[*corev1.Pod, reconcile.Request] {
	look := func(pod *corev1.Pod, q wake.Queue) {
		if len(pod.Spec.ResourceClaims) == 0 {
			return
		}
		if needsClaims(pod) && lacksName(pod) {
			q.Add(wake.Request(pod.Namespace, pod.Name))
		}
		if hasEnded(pod) {
			wakeClaims(pod, q)
		}
	}
	on := controller.Follow(look, c.forget)
	on.CreateFunc = func(_ context.Context, e event.TypedCreateEvent[*corev1.Pod], q wake.Queue) {
		if needsClaims(e.Object) {
			q.Add(wake.Request(e.Object.Namespace, e.Object.Name))
		}
		look(e.Object, q)
	}
	return on
}

// forget wakes up the claims of a deleted Pod.
func (c *Controller) forget(pod *corev1.Pod, q wake.Queue) {
	c.gate.Forget(pod.UID)
	wakeClaims(pod, q)
}

// lacksName reports whether the Pod's status lacks the name of one of its claims.
func lacksName(pod *corev1.Pod) bool {
	for i := range pod.Spec.ResourceClaims {
		if _, known := podview.ResourceClaimOf(pod, &pod.Spec.ResourceClaims[i]); !known {
			return true
		}
	}
	return false
}

func wakeClaims(pod *corev1.Pod, q wake.Queue) {
	for i := range pod.Spec.ResourceClaims {
		if name, known := podview.ResourceClaimOf(pod, &pod.Spec.ResourceClaims[i]); known && name != "" {
			q.Add(claimRequest(pod.Namespace, name))
		}
	}
}

// onClaim wakes up a claim that is reserved, owned by a Pod or being deleted, and the Pod of a deleted claim.
func (c *Controller) onClaim() handler.TypedFuncs[*resourcev1.ResourceClaim, reconcile.Request] {
	look := func(claim *resourcev1.ResourceClaim, q wake.Queue) {
		if len(claim.Status.ReservedFor) > 0 || claim.DeletionTimestamp != nil || podOf(claim) != nil {
			q.Add(claimRequest(claim.Namespace, claim.Name))
		}
	}
	return controller.Follow(look, c.gone)
}

func (c *Controller) gone(claim *resourcev1.ResourceClaim, q wake.Queue) {
	c.gate.Forget(claim.UID)
	if owner := podOf(claim); owner != nil {
		q.Add(wake.Request(claim.Namespace, owner.Name))
	}
}

// onTemplate wakes up the Pods that name a new template. Templates never change.
func (c *Controller) onTemplate() handler.TypedFuncs[*resourcev1.ResourceClaimTemplate, reconcile.Request] {
	return handler.TypedFuncs[*resourcev1.ResourceClaimTemplate, reconcile.Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[*resourcev1.ResourceClaimTemplate], q wake.Queue) {
			for _, pod := range storeindex.Find[corev1.Pod](c.stores.pods, byTemplate,
				storeindex.Key(e.Object.Namespace, e.Object.Name)) {
				q.Add(wake.Request(pod.Namespace, pod.Name))
			}
		},
	}
}
