// Package replicaset is the API resource replicasets of group apps: a desired count of Pods of one template.
package replicaset

import (
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericrest "k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/ptr"

	"keelson.dev/services/apiserver/internal/registry/rest"
)

var resource = rest.Resource[*appsv1.ReplicaSet]{
	Group:      appsv1.GroupName,
	Name:       "replicasets",
	Singular:   "replicaset",
	ShortNames: []string{"rs"},
	Categories: []string{"all"},
	New:        func() *appsv1.ReplicaSet { return &appsv1.ReplicaSet{} },
	NewList:    func() runtime.Object { return &appsv1.ReplicaSetList{} },
	Default:    Default,
	Strategy:   strategy,
	Status:     &statusStrategy,
	Columns:    columns,
	Fields:     fields,
}

// replicated tells /scale where the counts and the selector of a ReplicaSet are.
var replicated = rest.Replicated[*appsv1.ReplicaSet]{
	APIVersion: "apps/v1",
	Spec:       func(rs *appsv1.ReplicaSet) int32 { return ptr.Deref(rs.Spec.Replicas, defaultReplicas) },
	SetSpec:    func(rs *appsv1.ReplicaSet, replicas int32) { rs.Spec.Replicas = &replicas },
	Status:     func(rs *appsv1.ReplicaSet) int32 { return rs.Status.Replicas },
	Selector:   selectorString,
}

// AddToScheme registers defaults and field selectors.
func AddToScheme(scheme *runtime.Scheme) error { return resource.AddToScheme(scheme) }

// NewStorage opens the store and returns the ReplicaSet, its /status and its /scale.
func NewStorage(o rest.Options) (map[string]genericrest.Storage, error) {
	storage, err := resource.NewStorage(o)
	if err != nil {
		return nil, err
	}
	paths := storage.Map()
	paths["replicasets/scale"] = rest.NewScale(storage, replicated)
	return paths, nil
}

func selectorString(rs *appsv1.ReplicaSet) (string, error) {
	selector, err := metav1.LabelSelectorAsSelector(rs.Spec.Selector)
	if err != nil {
		return "", err
	}
	return selector.String(), nil
}
