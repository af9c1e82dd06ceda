// Package csinode is the resource CSINode of group storage.k8s.io: the storage drivers that a Node has.
//
//keelson:decision
package csinode

import (
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"keelson.dev/services/apiserver/internal/resource"
)

// Resource is the CSINode.
var Resource = resource.Resource[*storagev1.CSINode]{
	Group:         storagev1.GroupName,
	Name:          "csinodes",
	Singular:      "csinode",
	ClusterScoped: true,
	New:           func() *storagev1.CSINode { return &storagev1.CSINode{} },
	NewList:       func() runtime.Object { return &storagev1.CSINodeList{} },
	Strategy: resource.Strategy[*storagev1.CSINode]{
		PrepareForCreate: dropHealth,
		PrepareForUpdate: func(n, _ *storagev1.CSINode) { dropHealth(n) },
		Validate:         Validate,
		ValidateUpdate:   ValidateUpdate,
	},
	Columns: resource.NewColumns(
		resource.NameColumn[*storagev1.CSINode](),
		resource.Column("Drivers", "integer", storagev1.CSINodeSpec{}.SwaggerDoc()["drivers"],
			func(n *storagev1.CSINode) any { return int64(len(n.Spec.Drivers)) }),
		resource.AgeColumn[*storagev1.CSINode](),
	),
}

// dropHealth leaves out the health of the drivers, which is alpha and off.
func dropHealth(n *storagev1.CSINode) { n.Status = storagev1.CSINodeStatus{} }
