// Package volumeattachment is the resource VolumeAttachment of group storage.k8s.io: the wish that a driver attaches a
// volume to a Node, and what came of it.
//
//keelson:decision
package volumeattachment

import (
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"keelson.dev/services/apiserver/internal/resource"
)

var (
	specHelp   = storagev1.VolumeAttachmentSpec{}.SwaggerDoc()
	statusHelp = storagev1.VolumeAttachmentStatus{}.SwaggerDoc()
)

// Resource is the VolumeAttachment with its /status.
var Resource = resource.Resource[*storagev1.VolumeAttachment]{
	Group:         storagev1.GroupName,
	Name:          "volumeattachments",
	Singular:      "volumeattachment",
	ClusterScoped: true,
	New:           func() *storagev1.VolumeAttachment { return &storagev1.VolumeAttachment{} },
	NewList:       func() runtime.Object { return &storagev1.VolumeAttachmentList{} },
	Spec: resource.PartOf(func(a *storagev1.VolumeAttachment) *storagev1.VolumeAttachmentSpec {
		return &a.Spec
	}),
	Status: resource.PartOf(func(a *storagev1.VolumeAttachment) *storagev1.VolumeAttachmentStatus {
		return &a.Status
	}),
	// The field's attachments do not count their generation.
	NoGeneration:   true,
	Strategy:       resource.Strategy[*storagev1.VolumeAttachment]{Validate: Validate, ValidateUpdate: ValidateUpdate},
	StatusStrategy: resource.Strategy[*storagev1.VolumeAttachment]{ValidateUpdate: ValidateStatusUpdate},
	Columns: resource.NewColumns(
		resource.NameColumn[*storagev1.VolumeAttachment](),
		resource.Column("Attacher", "string", specHelp["attacher"],
			func(a *storagev1.VolumeAttachment) any { return a.Spec.Attacher }),
		resource.Column("PV", "string", storagev1.VolumeAttachmentSource{}.SwaggerDoc()["persistentVolumeName"],
			func(a *storagev1.VolumeAttachment) any { return ptr.Deref(a.Spec.Source.PersistentVolumeName, "") }),
		resource.Column("Node", "string", specHelp["nodeName"],
			func(a *storagev1.VolumeAttachment) any { return a.Spec.NodeName }),
		resource.Column("Attached", "boolean", statusHelp["attached"],
			func(a *storagev1.VolumeAttachment) any { return a.Status.Attached }),
		resource.AgeColumn[*storagev1.VolumeAttachment](),
	),
}
