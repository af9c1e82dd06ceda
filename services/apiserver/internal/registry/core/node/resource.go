// Package node is the resource Node of the core group: a machine that runs Pods.
//
//keelson:decision
package node

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"keelson.dev/services/apiserver/internal/resource"
)

// Resource is the Node with its /status. A node registers itself together with what it is.
var Resource = resource.Resource[*corev1.Node]{
	Name:           "nodes",
	Singular:       "node",
	ShortNames:     []string{"no"},
	ClusterScoped:  true,
	New:            func() *corev1.Node { return &corev1.Node{} },
	NewList:        func() runtime.Object { return &corev1.NodeList{} },
	Default:        Default,
	Spec:           resource.PartOf(func(n *corev1.Node) *corev1.NodeSpec { return &n.Spec }),
	Status:         resource.PartOf(func(n *corev1.Node) *corev1.NodeStatus { return &n.Status }),
	NoGeneration:   true,
	StatusOnCreate: true,
	Strategy:       resource.Strategy[*corev1.Node]{Validate: Validate, ValidateUpdate: ValidateUpdate},
	StatusStrategy: resource.Strategy[*corev1.Node]{
		ValidateUpdate: func(n, _ *corev1.Node) field.ErrorList { return ValidateStatus(n) },
	},
	Columns: columns,
	Fields: []resource.Field[*corev1.Node]{
		{Label: "spec.unschedulable", Value: func(n *corev1.Node) string {
			return strconv.FormatBool(n.Spec.Unschedulable)
		}},
	},
}
