package pod

import (
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"keelson.dev/services/apiserver/internal/registry/core/podspec"
	"keelson.dev/services/apiserver/internal/registry/rest"
)

// strategy rules the writes of a Pod itself; the status belongs to /status.
var strategy = rest.Strategy[*corev1.Pod]{
	PrepareForCreate: prepareForCreate,
	PrepareForUpdate: prepareForUpdate,
	Validate:         Validate,
	ValidateUpdate:   ValidateUpdate,
	Graceful:         graceful,
	ResetFields:      map[string][]string{"v1": {"status"}},
}

// prepareForCreate gives a new Pod the status that it has before anything happened to it.
func prepareForCreate(p *corev1.Pod) {
	p.Generation = 1
	podspec.DropUnserved(&p.Spec)
	joinMatchLabelKeys(p)
	p.Status = corev1.PodStatus{Phase: corev1.PodPending, QOSClass: qosClass(&p.Spec)}
	if len(p.Spec.SchedulingGates) > 0 {
		p.Status.Conditions = []corev1.PodCondition{{
			Type:    corev1.PodScheduled,
			Status:  corev1.ConditionFalse,
			Reason:  corev1.PodReasonSchedulingGated,
			Message: "Scheduling is blocked due to non-empty scheduling gates",
		}}
	}
}

func prepareForUpdate(p, old *corev1.Pod) {
	podspec.DropUnserved(&p.Spec)
	p.Status = old.Status
	rest.RaiseGeneration(p, old, !apiequality.Semantic.DeepEqual(p.Spec, old.Spec))
}
