package volumeattachment

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/fieldcheck/fieldtest"
	"keelson.dev/services/apiserver/internal/registry/table/tabletest"
)

func attachment(source storagev1.VolumeAttachmentSource) *storagev1.VolumeAttachment {
	return &storagev1.VolumeAttachment{Spec: storagev1.VolumeAttachmentSpec{
		Attacher: "disk.example.com", NodeName: "node-1", Source: source}}
}

func named(name string) *storagev1.VolumeAttachment {
	return attachment(storagev1.VolumeAttachmentSource{PersistentVolumeName: &name})
}

func inline(edit func(*corev1.PersistentVolumeSpec)) *storagev1.VolumeAttachment {
	spec := &corev1.PersistentVolumeSpec{PersistentVolumeSource: corev1.PersistentVolumeSource{
		CSI: &corev1.CSIPersistentVolumeSource{Driver: "disk.example.com", VolumeHandle: "a"}}}
	edit(spec)
	return attachment(storagev1.VolumeAttachmentSource{InlineVolumeSpec: spec})
}

func TestValidate(t *testing.T) {
	const one = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
	both := inline(func(*corev1.PersistentVolumeSpec) {})
	both.Spec.Source.PersistentVolumeName = ptr.To("a")
	for _, row := range []struct {
		name       string
		attachment *storagev1.VolumeAttachment
		want       []string
	}{
		{"named", named("volume-1"), nil},
		{"inline", inline(func(*corev1.PersistentVolumeSpec) {}), nil},
		{"nothing", &storagev1.VolumeAttachment{}, []string{"spec.attacher: Required value",
			"spec.nodeName: Required value", "spec.source: Required value: " + one}},
		{"both", both, []string{"spec.source: Forbidden: " + one}},
		{"empty name", named(""), []string{"spec.source.persistentVolumeName: Required value"}},
		{"no name", named("A"), []string{`spec.source.persistentVolumeName: Invalid value: "A"`}},
		{"inline with a claim's fields", inline(func(s *corev1.PersistentVolumeSpec) {
			s.ClaimRef, s.PersistentVolumeReclaimPolicy = &corev1.ObjectReference{}, "Retain"
			s.StorageClassName, s.VolumeMode = "a", ptr.To(corev1.PersistentVolumeBlock)
			s.NodeAffinity = &corev1.VolumeNodeAffinity{}
		}), []string{"spec.source.inlineVolumeSpec.claimRef: Forbidden: may not be specified in the context of inline",
			"spec.source.inlineVolumeSpec.persistentVolumeReclaimPolicy: Forbidden",
			"spec.source.inlineVolumeSpec.storageClassName: Forbidden",
			"spec.source.inlineVolumeSpec.volumeMode: Forbidden",
			"spec.source.inlineVolumeSpec.nodeAffinity: Forbidden"}},
		{"inline without a driver", inline(func(s *corev1.PersistentVolumeSpec) { s.CSI = nil }),
			[]string{"spec.source.inlineVolumeSpec.csi: Required value"}},
		{"inline with half a driver", inline(func(s *corev1.PersistentVolumeSpec) { s.CSI.Driver = "" }),
			[]string{"spec.source.inlineVolumeSpec.csi.driver: Required value"}},
	} {
		t.Run(row.name, func(t *testing.T) { fieldtest.Check(t, Validate(row.attachment), row.want...) })
	}
}

func TestValidateUpdate(t *testing.T) {
	fieldtest.Check(t, ValidateUpdate(named("a"), named("a")))
	fieldtest.Check(t, ValidateUpdate(named("b"), named("a")), "spec: Invalid value: ")
}

func TestValidateStatusUpdate(t *testing.T) {
	said := func(bytes, metadata int) *storagev1.VolumeAttachment {
		a := named("a")
		failure := &storagev1.VolumeError{Message: strings.Repeat("x", bytes)}
		a.Status = storagev1.VolumeAttachmentStatus{AttachError: failure, DetachError: failure,
			AttachmentMetadata: map[string]string{"a": strings.Repeat("x", metadata-1)}}
		return a
	}
	fieldtest.Check(t, ValidateStatusUpdate(said(1024, 262144), nil))
	fieldtest.Check(t, ValidateStatusUpdate(said(1025, 262145), nil),
		"status.attachmentMetadata: Too long: may not be more than 262144 bytes",
		"status.attachError.message: Too long: may not be more than 1024 bytes",
		"status.detachError.message: Too long: may not be more than 1024 bytes")
	failed := named("a")
	failed.Status.AttachError = &storagev1.VolumeError{ErrorCode: ptr.To[int32](-1)}
	fieldtest.Check(t, ValidateStatusUpdate(failed, nil), "status.attachError.errorCode: Invalid value: -1")
}

func TestColumns(t *testing.T) { tabletest.Golden(t, Resource) }
