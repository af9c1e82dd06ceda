package replicaset

import (
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"keelson.dev/services/apiserver/internal/registry/core/podspec"
	"keelson.dev/services/apiserver/internal/registry/rest"
)

// strategy rules the writes of a ReplicaSet itself; the status belongs to /status.
var strategy = rest.Strategy[*appsv1.ReplicaSet]{
	PrepareForCreate: prepareForCreate,
	PrepareForUpdate: prepareForUpdate,
	Validate:         Validate,
	ValidateUpdate:   ValidateUpdate,
	ResetFields:      map[string][]string{"apps/v1": {"status"}},
}

// statusStrategy rules the writes of /status: they change nothing but the status.
var statusStrategy = rest.Strategy[*appsv1.ReplicaSet]{
	PrepareForUpdate: func(rs, old *appsv1.ReplicaSet) { rs.Spec = old.Spec },
	ValidateUpdate:   ValidateStatusUpdate,
	ResetFields:      map[string][]string{"apps/v1": {"spec"}},
}

// fields are the field selectors of a ReplicaSet.
var fields = []rest.Field[*appsv1.ReplicaSet]{
	{Label: "status.replicas", Value: func(rs *appsv1.ReplicaSet) string { return strconv.Itoa(int(rs.Status.Replicas)) }},
}

func prepareForCreate(rs *appsv1.ReplicaSet) {
	rs.Status = appsv1.ReplicaSetStatus{}
	rs.Generation = 1
	podspec.DropUnserved(&rs.Spec.Template.Spec)
}

func prepareForUpdate(rs, old *appsv1.ReplicaSet) {
	rs.Status = old.Status
	podspec.DropUnserved(&rs.Spec.Template.Spec)
	rest.RaiseGeneration(rs, old, !equality.Semantic.DeepEqual(rs.Spec, old.Spec))
}
