// Package volumeattachment is the resource VolumeAttachment of group storage.k8s.io: the wish that a driver attaches a
// volume to a Node, and what came of it.
package volumeattachment

import (
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"keelson.dev/services/apiserver/internal/registry/rest"
)

var (
	specHelp   = storagev1.VolumeAttachmentSpec{}.SwaggerDoc()
	statusHelp = storagev1.VolumeAttachmentStatus{}.SwaggerDoc()
)

// Resource is the VolumeAttachment with its /status.
var Resource = rest.Resource[*storagev1.VolumeAttachment]{
	Group:         storagev1.GroupName,
	Name:          "volumeattachments",
	Singular:      "volumeattachment",
	ClusterScoped: true,
	New:           func() *storagev1.VolumeAttachment { return &storagev1.VolumeAttachment{} },
	NewList:       func() runtime.Object { return &storagev1.VolumeAttachmentList{} },
	Spec: rest.PartOf(func(a *storagev1.VolumeAttachment) *storagev1.VolumeAttachmentSpec {
		return &a.Spec
	}),
	Status: rest.PartOf(func(a *storagev1.VolumeAttachment) *storagev1.VolumeAttachmentStatus {
		return &a.Status
	}),
	// The field's attachments do not count their generation.
	NoGeneration:   true,
	Strategy:       rest.Strategy[*storagev1.VolumeAttachment]{Validate: Validate, ValidateUpdate: ValidateUpdate},
	StatusStrategy: rest.Strategy[*storagev1.VolumeAttachment]{ValidateUpdate: ValidateStatusUpdate},
	Columns: rest.NewColumns(
		rest.NameColumn[*storagev1.VolumeAttachment](),
		rest.Column("Attacher", "string", specHelp["attacher"],
			func(a *storagev1.VolumeAttachment) any { return a.Spec.Attacher }),
		rest.Column("PV", "string", storagev1.VolumeAttachmentSource{}.SwaggerDoc()["persistentVolumeName"],
			func(a *storagev1.VolumeAttachment) any { return ptr.Deref(a.Spec.Source.PersistentVolumeName, "") }),
		rest.Column("Node", "string", specHelp["nodeName"],
			func(a *storagev1.VolumeAttachment) any { return a.Spec.NodeName }),
		rest.Column("Attached", "boolean", statusHelp["attached"],
			func(a *storagev1.VolumeAttachment) any { return a.Status.Attached }),
		rest.AgeColumn[*storagev1.VolumeAttachment](),
	),
}
