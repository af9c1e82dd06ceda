package deployment

import (
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericrest "k8s.io/apiserver/pkg/registry/rest"

	"keelson.dev/services/apiserver/internal/registry/rest"
)

var resource = rest.Resource[*appsv1.Deployment]{
	Group:      appsv1.GroupName,
	Name:       "deployments",
	Singular:   "deployment",
	ShortNames: []string{"deploy"},
	Categories: []string{"all"},
	New:        func() *appsv1.Deployment { return &appsv1.Deployment{} },
	NewList:    func() runtime.Object { return &appsv1.DeploymentList{} },
	Default:    Default,
	Strategy:   strategy,
	Status:     &statusStrategy,
	Columns:    columns,
}

// AddToScheme registers defaults and field selectors.
func AddToScheme(scheme *runtime.Scheme) error { return resource.AddToScheme(scheme) }

// NewStorage opens the store and returns the Deployment, its /status and its /scale.
func NewStorage(o rest.Options) (map[string]genericrest.Storage, error) {
	storage, err := resource.NewStorage(o)
	if err != nil {
		return nil, err
	}
	paths := storage.Map()
	paths["deployments/scale"] = rest.NewScale(storage, replicated)
	return paths, nil
}
