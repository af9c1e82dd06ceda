package deployment

import (
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"keelson.dev/kit/podspec"
	"keelson.dev/services/apiserver/internal/resource"
)

// Resource is the Deployment with its /status and /scale.
var Resource = resource.Resource[*appsv1.Deployment]{
	Group:      appsv1.GroupName,
	Name:       "deployments",
	Singular:   "deployment",
	ShortNames: []string{"deploy"},
	Categories: []string{"all"},
	New:        func() *appsv1.Deployment { return &appsv1.Deployment{} },
	NewList:    func() runtime.Object { return &appsv1.DeploymentList{} },
	Default:    Default,
	Spec:       resource.PartOf(func(d *appsv1.Deployment) *appsv1.DeploymentSpec { return &d.Spec }),
	Status:     resource.PartOf(func(d *appsv1.Deployment) *appsv1.DeploymentStatus { return &d.Status }),
	Strategy: resource.Strategy[*appsv1.Deployment]{
		PrepareForCreate: func(d *appsv1.Deployment) { podspec.DropUnserved(&d.Spec.Template.Spec) },
		PrepareForUpdate: func(d, _ *appsv1.Deployment) { podspec.DropUnserved(&d.Spec.Template.Spec) },
		Validate:         Validate,
		ValidateUpdate:   ValidateUpdate,
	},
	StatusStrategy: resource.Strategy[*appsv1.Deployment]{
		PrepareForUpdate: func(d, old *appsv1.Deployment) { d.Labels = old.Labels },
		ValidateUpdate:   ValidateStatusUpdate,
	},
	Scale: &resource.Replicated[*appsv1.Deployment]{
		Desired:  func(d *appsv1.Deployment) **int32 { return &d.Spec.Replicas },
		Existing: func(d *appsv1.Deployment) int32 { return d.Status.Replicas },
		Selector: func(d *appsv1.Deployment) *metav1.LabelSelector { return d.Spec.Selector },
	},
	Columns: columns,
}
