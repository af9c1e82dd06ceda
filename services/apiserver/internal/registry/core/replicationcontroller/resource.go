// Package replicationcontroller is the resource ReplicationController of the core group: a desired count of Pods of one
// template, from before ReplicaSets.
//
//keelson:decision
package replicationcontroller

import (
	"maps"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"keelson.dev/kit/defaults"
	"keelson.dev/kit/podspec"
	"keelson.dev/services/apiserver/internal/resource"
)

const defaultReplicas = 1

// Resource is the ReplicationController with its /status and /scale.
var Resource = resource.Resource[*corev1.ReplicationController]{
	Name:       "replicationcontrollers",
	Singular:   "replicationcontroller",
	ShortNames: []string{"rc"},
	Categories: []string{"all"},
	New:        func() *corev1.ReplicationController { return &corev1.ReplicationController{} },
	NewList:    func() runtime.Object { return &corev1.ReplicationControllerList{} },
	Default:    Default,
	Spec: resource.PartOf(func(rc *corev1.ReplicationController) *corev1.ReplicationControllerSpec {
		return &rc.Spec
	}),
	Status: resource.PartOf(func(rc *corev1.ReplicationController) *corev1.ReplicationControllerStatus {
		return &rc.Status
	}),
	Strategy: resource.Strategy[*corev1.ReplicationController]{
		PrepareForCreate: func(rc *corev1.ReplicationController) { dropUnserved(rc) },
		PrepareForUpdate: func(rc, _ *corev1.ReplicationController) { dropUnserved(rc) },
		Validate:         Validate,
		ValidateUpdate:   ValidateUpdate,
		OrphanDependents: true,
	},
	StatusStrategy: resource.Strategy[*corev1.ReplicationController]{ValidateUpdate: ValidateStatusUpdate},
	Scale: &resource.Replicated[*corev1.ReplicationController]{
		Desired:  func(rc *corev1.ReplicationController) **int32 { return &rc.Spec.Replicas },
		Existing: func(rc *corev1.ReplicationController) int32 { return rc.Status.Replicas },
		Selector: func(rc *corev1.ReplicationController) *metav1.LabelSelector {
			return &metav1.LabelSelector{MatchLabels: rc.Spec.Selector}
		},
	},
	Columns: columns,
	Fields: []resource.Field[*corev1.ReplicationController]{
		{Label: "status.replicas", Value: func(rc *corev1.ReplicationController) string {
			return strconv.Itoa(int(rc.Status.Replicas))
		}},
	},
}

// Default fills in the fields that rc leaves out: it selects, and bears, the labels of its template.
func Default(rc *corev1.ReplicationController) {
	defaults.SetPtr(&rc.Spec.Replicas, defaultReplicas)
	if rc.Spec.Template == nil {
		return
	}
	podspec.SetTemplateDefaults(rc.Spec.Template)
	if len(rc.Spec.Selector) == 0 {
		rc.Spec.Selector = maps.Clone(rc.Spec.Template.Labels)
	}
	if len(rc.Labels) == 0 {
		rc.Labels = maps.Clone(rc.Spec.Template.Labels)
	}
}

func dropUnserved(rc *corev1.ReplicationController) {
	if rc.Spec.Template != nil {
		podspec.DropUnserved(&rc.Spec.Template.Spec)
	}
}
