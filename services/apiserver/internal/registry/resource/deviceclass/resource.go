// Package deviceclass is the resource DeviceClass of group resource.k8s.io: what an administrator says of devices of a
// kind, to which the requests of claims refer.
//
//keelson:decision
package deviceclass

import (
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"keelson.dev/services/apiserver/internal/resource"
)

// Resource is the DeviceClass.
var Resource = resource.Resource[*resourcev1.DeviceClass]{
	Group:         resourcev1.GroupName,
	Name:          "deviceclasses",
	Singular:      "deviceclass",
	ClusterScoped: true,
	New:           func() *resourcev1.DeviceClass { return &resourcev1.DeviceClass{} },
	NewList:       func() runtime.Object { return &resourcev1.DeviceClassList{} },
	Spec:          resource.PartOf(func(c *resourcev1.DeviceClass) *resourcev1.DeviceClassSpec { return &c.Spec }),
	Strategy:      resource.Strategy[*resourcev1.DeviceClass]{Validate: Validate, ValidateUpdate: ValidateUpdate},
	Columns: resource.NewColumns(resource.NameColumn[*resourcev1.DeviceClass](),
		resource.AgeColumn[*resourcev1.DeviceClass]()),
}
