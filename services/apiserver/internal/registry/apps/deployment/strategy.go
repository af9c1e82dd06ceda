package deployment

import (
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"keelson.dev/services/apiserver/internal/registry/core/podspec"
	"keelson.dev/services/apiserver/internal/registry/rest"
)

// strategy rules the writes of a Deployment itself; the status belongs to /status.
var strategy = rest.Strategy[*appsv1.Deployment]{
	PrepareForCreate: prepareForCreate,
	PrepareForUpdate: prepareForUpdate,
	Validate:         Validate,
	ValidateUpdate:   ValidateUpdate,
	ResetFields:      map[string][]string{"apps/v1": {"status"}},
}

func prepareForCreate(d *appsv1.Deployment) {
	d.Status = appsv1.DeploymentStatus{}
	d.Generation = 1
	podspec.DropUnserved(&d.Spec.Template.Spec)
}

func prepareForUpdate(d, old *appsv1.Deployment) {
	d.Status = old.Status
	podspec.DropUnserved(&d.Spec.Template.Spec)
	rest.RaiseGeneration(d, old, !equality.Semantic.DeepEqual(d.Spec, old.Spec))
}
