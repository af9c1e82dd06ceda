package disruption

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"keelson.dev/kit/introspect"
	"keelson.dev/kit/pass"
	"keelson.dev/services/workload-controllers/internal/gate"
	"keelson.dev/services/workload-controllers/internal/wake"
	"keelson.dev/services/workload-controllers/internal/write"
)

// podPrefix marks a request for a Pod. No budget has such a name.
const podPrefix = "pod/"

func podRequest(pod *corev1.Pod) reconcile.Request {
	return wake.Request(pod.Namespace, podPrefix+pod.Name)
}

// budgetsAndPods makes a pass over a budget, or resets a Pod's DisruptionTarget.
type budgetsAndPods struct {
	budgets reconcile.Reconciler
	pods    func(context.Context, client.ObjectKey) (reconcile.Result, error)
}

// Reconcile implements reconcile.Reconciler.
func (b budgetsAndPods) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	if name, ok := strings.CutPrefix(request.Name, podPrefix); ok {
		return b.pods(ctx, client.ObjectKey{Namespace: request.Namespace, Name: name})
	}
	return b.budgets.Reconcile(ctx, request)
}

// explainPod explains a Pod whose DisruptionTarget may be reset; it returns false for other Pods.
func (c *Controller) explainPod(ctx context.Context, namespace, name string) (introspect.Explanation, bool) {
	pod := &corev1.Pod{}
	if err := c.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, pod); err != nil {
		return introspect.Explanation{}, false
	}
	at, stale := staleAt(pod)
	if !stale {
		return introspect.Explanation{}, false
	}
	return accountOfPod(pod, at, c.now()).Explanation(), true
}

// takeBack sets a Pod's outdated DisruptionTarget to False. The write fails if the Pod has changed: a later pass
// decides about the new state.
func (c *Controller) takeBack(ctx context.Context, key client.ObjectKey) (reconcile.Result, error) {
	pod := &corev1.Pod{}
	if err := c.client.Get(ctx, key, pod); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	at, stale := staleAt(pod)
	if !stale {
		return reconcile.Result{}, nil
	}
	if now := c.now(); at.After(now) {
		return reconcile.Result{RequeueAfter: pass.Until(at, now)}, nil
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": pod.UID, "resourceVersion": pod.ResourceVersion},
		"status": map[string]any{"conditions": []map[string]any{{"type": corev1.DisruptionTarget,
			"status": corev1.ConditionFalse, "reason": "", "message": "",
			"lastTransitionTime": metav1.NewTime(c.now())}}},
	})
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("writing the condition: %w", err)
	}
	err = write.Do(nil, pod.UID, "pod.condition", func() (types.UID, gate.Seen, error) {
		return "", nil, c.client.Status().Patch(ctx, pod.DeepCopy(), client.RawPatch(types.StrategicMergePatchType,
			patch))
	})
	if apierrors.IsConflict(err) {
		return reconcile.Result{}, nil // the newer state is on its way here
	}
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("taking back the DisruptionTarget of Pod %s: %w", key, err)
	}
	return reconcile.Result{}, nil
}
