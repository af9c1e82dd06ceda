// Package lease is the resource Lease of group coordination.k8s.io: who holds something, and until when.
//
//keelson:decision
package lease

import (
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"keelson.dev/services/apiserver/internal/resource"
)

// Resource is the Lease.
var Resource = resource.Resource[*coordinationv1.Lease]{
	Group:    coordinationv1.GroupName,
	Name:     "leases",
	Singular: "lease",
	New:      func() *coordinationv1.Lease { return &coordinationv1.Lease{} },
	NewList:  func() runtime.Object { return &coordinationv1.LeaseList{} },
	Strategy: resource.Strategy[*coordinationv1.Lease]{
		PrepareForCreate: dropElection,
		PrepareForUpdate: func(l, _ *coordinationv1.Lease) { dropElection(l) },
		Validate:         Validate,
		CreateOnUpdate:   true,
	},
	Columns: resource.NewColumns(
		resource.NameColumn[*coordinationv1.Lease](),
		resource.Column("Holder", "string", coordinationv1.LeaseSpec{}.SwaggerDoc()["holderIdentity"],
			func(l *coordinationv1.Lease) any { return ptr.Deref(l.Spec.HolderIdentity, "") }),
		resource.AgeColumn[*coordinationv1.Lease](),
	),
}

// dropElection leaves out what only coordinated elections heed (CoordinatedLeaderElection), which are off.
func dropElection(l *coordinationv1.Lease) { l.Spec.Strategy, l.Spec.PreferredHolder = nil, nil }
