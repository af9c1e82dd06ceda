package deployment

import (
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/services/apiserver/internal/registry/rest"
)

// replicated tells /scale where the counts and the selector of a Deployment are.
var replicated = rest.Replicated[*appsv1.Deployment]{
	APIVersion: "apps/v1",
	Spec:       func(d *appsv1.Deployment) int32 { return ptr.Deref(d.Spec.Replicas, defaultReplicas) },
	SetSpec:    func(d *appsv1.Deployment, replicas int32) { d.Spec.Replicas = &replicas },
	Status:     func(d *appsv1.Deployment) int32 { return d.Status.Replicas },
	Selector:   selectorString,
}

func selectorString(d *appsv1.Deployment) (string, error) {
	selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
	if err != nil {
		return "", err
	}
	return selector.String(), nil
}
