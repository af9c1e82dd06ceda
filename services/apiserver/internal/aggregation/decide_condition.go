package aggregation

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

// Verdict is what the condition Available says. The reasons are those of Kubernetes. Its zero value says nothing.
type Verdict struct {
	Status          apiregistration.ConditionStatus
	Reason, Message string
}

var passed = Verdict{apiregistration.ConditionTrue, "Passed", "all checks passed"}

func unavailable(reason, message string) Verdict {
	return Verdict{apiregistration.ConditionFalse, reason, message}
}

// decideLocal is the verdict on what is not handed on. served are the versions of the group that the apiserver serves
// itself.
func decideLocal(spec *apiregistration.APIServiceSpec, served []string) Verdict {
	switch {
	case slices.Contains(served, spec.Version) && spec.Service != nil:
		return Verdict{apiregistration.ConditionTrue, "Local",
			"the apiserver serves this version itself and does not ask the service"}
	case len(served) > 0 && spec.Service != nil:
		return unavailable("Local", fmt.Sprintf("the apiserver serves the group %q itself, in the versions %v, "+
			"and does not ask the service", spec.Group, served))
	}
	return Verdict{apiregistration.ConditionTrue, "Local", "Local APIServices are always available"}
}

// decideStatus is the status with the verdict; changed reports whether the verdict is another one.
func decideStatus(old apiregistration.APIServiceStatus, v Verdict, now time.Time) (_ apiregistration.APIServiceStatus,
	changed bool) {
	next := apiregistration.APIServiceCondition{Type: apiregistration.Available, Status: v.Status, Reason: v.Reason,
		Message: v.Message, LastTransitionTime: metav1.NewTime(now)}
	status := *old.DeepCopy()
	at := slices.IndexFunc(status.Conditions, func(c apiregistration.APIServiceCondition) bool {
		return c.Type == apiregistration.Available
	})
	if at < 0 {
		status.Conditions = append(status.Conditions, next)
		return status, true
	}
	last := status.Conditions[at]
	if last.Status == v.Status {
		next.LastTransitionTime = last.LastTransitionTime
	}
	status.Conditions[at] = next
	return status, last.Status != v.Status || last.Reason != v.Reason || last.Message != v.Message
}
