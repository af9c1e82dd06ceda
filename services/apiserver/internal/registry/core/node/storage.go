// Package node is the resource Node of the core group: a machine that runs Pods.
package node

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericrest "k8s.io/apiserver/pkg/registry/rest"

	"keelson.dev/services/apiserver/internal/registry/rest"
)

var resource = rest.Resource[*corev1.Node]{
	Name:       "nodes",
	Singular:   "node",
	ShortNames: []string{"no"},
	New:        func() *corev1.Node { return &corev1.Node{} },
	NewList:    func() runtime.Object { return &corev1.NodeList{} },
	Default:    Default,
	Strategy:   strategy,
	Status:     &statusStrategy,
	Columns:    columns,
	Fields: []rest.Field[*corev1.Node]{
		{Label: "spec.unschedulable", Value: func(n *corev1.Node) string { return strconv.FormatBool(n.Spec.Unschedulable) }},
	},
}

// strategy rules the writes of a Node itself; the status belongs to /status.
var strategy = rest.Strategy[*corev1.Node]{
	ClusterScoped:    true,
	PrepareForUpdate: func(n, old *corev1.Node) { n.Status = old.Status },
	Validate:         Validate,
	ValidateUpdate:   ValidateUpdate,
	ResetFields:      map[string][]string{"v1": {"status"}},
}

// statusStrategy rules the writes of /status: they change nothing of the spec.
var statusStrategy = rest.Strategy[*corev1.Node]{
	ClusterScoped:    true,
	PrepareForUpdate: func(n, old *corev1.Node) { n.Spec = old.Spec },
	ValidateUpdate:   func(n, _ *corev1.Node) field.ErrorList { return ValidateStatus(n) },
	ResetFields:      map[string][]string{"v1": {"spec"}},
}

// AddToScheme registers defaults and field selectors.
func AddToScheme(scheme *runtime.Scheme) error { return resource.AddToScheme(scheme) }

// NewStorage opens the store and returns the Node and its /status.
func NewStorage(o rest.Options) (map[string]genericrest.Storage, error) {
	storage, err := resource.NewStorage(o)
	if err != nil {
		return nil, err
	}
	return storage.Map(), nil
}
