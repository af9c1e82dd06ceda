package pod

import (
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/conditions"
	"keelson.dev/kit/podview"
	"keelson.dev/services/apiserver/internal/registry/policy/poddisruptionbudget"
)

// maxUnconfirmed is how many evictions of a budget may wait for the controller to see them.
const maxUnconfirmed = 2000

// evictionWay is how a Pod may be evicted.
type evictionWay struct {
	// budget is the one to spend from; empty: the eviction costs nothing.
	budget string
	// asSeen allows it only as long as the Pod is what it was judged to be.
	asSeen bool
}

// judgeEviction says how a Pod may be evicted, given the budgets of its namespace. The eviction of a Pod that does not
// run disrupts nothing, nor does that of a Pod that is not ready while enough others are.
func judgeEviction(pod *corev1.Pod, budgets []policyv1.PodDisruptionBudget) (evictionWay, error) {
	switch {
	case podview.IsTerminal(pod), pod.DeletionTimestamp != nil:
		return evictionWay{}, nil
	case pod.Status.Phase == corev1.PodPending:
		return evictionWay{asSeen: true}, nil
	}
	matching := budgetsOf(pod, budgets)
	switch len(matching) {
	case 0:
		return evictionWay{}, nil
	case 1:
	default:
		return evictionWay{}, apierrors.NewInternalError(errors.New(
			"this pod has more than one PodDisruptionBudget, which the eviction subresource does not support"))
	}
	budget := matching[0]
	if !podview.IsReady(pod) && sparesUnready(budget) {
		return evictionWay{asSeen: true}, nil
	}
	return evictionWay{budget: budget.Name}, nil
}

func budgetsOf(pod *corev1.Pod, budgets []policyv1.PodDisruptionBudget) []*policyv1.PodDisruptionBudget {
	var matching []*policyv1.PodDisruptionBudget
	for i := range budgets {
		// A selector that cannot be read, written before it was checked, selects nothing.
		selector, err := metav1.LabelSelectorAsSelector(budgets[i].Spec.Selector)
		if err == nil && selector.Matches(labels.Set(pod.Labels)) {
			matching = append(matching, &budgets[i])
		}
	}
	return matching
}

// sparesUnready reports whether the eviction of a Pod that is not ready spends nothing of the budget.
func sparesUnready(budget *policyv1.PodDisruptionBudget) bool {
	if ptr.Deref(budget.Spec.UnhealthyPodEvictionPolicy, policyv1.IfHealthyBudget) == policyv1.AlwaysAllow {
		return true
	}
	status := &budget.Status
	return status.DesiredHealthy > 0 && status.CurrentHealthy >= status.DesiredHealthy
}

// spend takes the eviction of the Pod called name off the budget, or says why it cannot. The texts are the API's.
func spend(budget *policyv1.PodDisruptionBudget, name string, now time.Time) error {
	status := &budget.Status
	switch {
	case status.ObservedGeneration < budget.Generation:
		return exhausted(10, "The disruption budget %s is still being processed by the server.", budget.Name)
	case status.DisruptionsAllowed < 0:
		return apierrors.NewForbidden(policyv1.Resource(poddisruptionbudget.Resource.Name), budget.Name,
			errors.New("pdb disruptions allowed is negative"))
	case len(status.DisruptedPods) > maxUnconfirmed:
		return apierrors.NewForbidden(policyv1.Resource(poddisruptionbudget.Resource.Name), budget.Name,
			errors.New("DisruptedPods map too big - too many evictions not confirmed by PDB controller"))
	case status.DisruptionsAllowed == 0:
		return exhausted(0, "The disruption budget %s needs %d healthy pods and has %d currently", budget.Name,
			status.DesiredHealthy, status.CurrentHealthy)
	}
	status.DisruptionsAllowed--
	if status.DisruptionsAllowed == 0 {
		status.Conditions, _ = conditions.Standard.Set(status.Conditions, metav1.Condition{
			Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse,
			Reason: policyv1.InsufficientPodsReason, ObservedGeneration: status.ObservedGeneration,
		}, now)
	}
	if status.DisruptedPods == nil {
		status.DisruptedPods = map[string]metav1.Time{}
	}
	status.DisruptedPods[name] = metav1.Time{Time: now}
	return nil
}

// exhausted is the answer that the same eviction may succeed later.
func exhausted(retryAfterSeconds int, cause string, args ...any) error {
	err := apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.",
		retryAfterSeconds)
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes,
		metav1.StatusCause{Type: policyv1.DisruptionBudgetCause, Message: fmt.Sprintf(cause, args...)})
	return err
}
