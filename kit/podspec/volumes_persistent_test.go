package podspec

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/fieldcheck/fieldtest"
)

func TestValidatePersistentSource(t *testing.T) {
	type source = corev1.PersistentVolumeSource
	whole, half := &corev1.SecretReference{Name: "a", Namespace: "b"}, &corev1.SecretReference{Name: "a"}
	for _, row := range []struct {
		name   string
		source source
		want   []string
	}{
		{"none", source{}, []string{"at: Required value: must specify a volume type"}},
		{"two", source{NFS: &corev1.NFSVolumeSource{Server: "a", Path: "/b"},
			Local: &corev1.LocalVolumeSource{Path: "/a"}},
			[]string{"at.local: Forbidden: may not specify more than 1 volume type"}},
		{"of Pods too", source{NFS: &corev1.NFSVolumeSource{Server: "a", Path: "b"}},
			[]string{`at.nfs.path: Invalid value: "b": must be an absolute path`}},
		{"a folder", source{Local: &corev1.LocalVolumeSource{Path: "/mnt/a"}}, nil},
		{"no folder", source{Local: &corev1.LocalVolumeSource{}}, []string{"at.local.path: Required value"}},
		{"a folder of where", source{Local: &corev1.LocalVolumeSource{Path: "a"}},
			[]string{`at.local.path: Invalid value: "a": must be an absolute path`}},
		{"a folder above", source{Local: &corev1.LocalVolumeSource{Path: "/a/../b"}},
			[]string{`at.local.path: Invalid value: "/a/../b": must not contain '..'`}},
		{"a driver", source{CSI: &corev1.CSIPersistentVolumeSource{Driver: "a", VolumeHandle: "b",
			NodeStageSecretRef: whole}},
			nil},
		{"no driver", source{CSI: &corev1.CSIPersistentVolumeSource{
			ControllerPublishSecretRef: half, ControllerExpandSecretRef: half, NodePublishSecretRef: half,
			NodeStageSecretRef: half, NodeExpandSecretRef: half,
		}}, []string{
			"at.csi.driver: Required value", "at.csi.volumeHandle: Required value",
			"at.csi.controllerPublishSecretRef.namespace: Required value",
			"at.csi.controllerExpandSecretRef.namespace: Required value",
			"at.csi.nodePublishSecretRef.namespace: Required value",
			"at.csi.nodeStageSecretRef.namespace: Required value",
			"at.csi.nodeExpandSecretRef.namespace: Required value",
		}},
		{"glusterfs", source{Glusterfs: &corev1.GlusterfsPersistentVolumeSource{EndpointsNamespace: ptr.To("A")}},
			[]string{
				"at.glusterfs.endpoints: Required value", "at.glusterfs.path: Required value",
				`at.glusterfs.endpointsNamespace: Invalid value: "A"`}},
		{"rbd", source{RBD: &corev1.RBDPersistentVolumeSource{}},
			[]string{"at.rbd.monitors: Required value", "at.rbd.image: Required value"}},
		{"iscsi", source{ISCSI: &corev1.ISCSIPersistentVolumeSource{TargetPortal: "a", IQN: "b", Lun: 256,
			SessionCHAPAuth: true}},
			[]string{"at.iscsi.lun: Invalid value: 256", "at.iscsi.secretRef: Required value"}},
		{"iscsi with a nameless secret", source{ISCSI: &corev1.ISCSIPersistentVolumeSource{TargetPortal: "a", IQN: "b",
			Lun: 255, DiscoveryCHAPAuth: true, SecretRef: &corev1.SecretReference{}}},
			[]string{"at.iscsi.secretRef.name: Required value"}},
		{"cinder", source{Cinder: &corev1.CinderPersistentVolumeSource{SecretRef: half}},
			[]string{"at.cinder.volumeID: Required value", "at.cinder.secretRef.namespace: Required value"}},
		{"cephfs", source{CephFS: &corev1.CephFSPersistentVolumeSource{}},
			[]string{"at.cephfs.monitors: Required value"}},
		{"flex", source{FlexVolume: &corev1.FlexPersistentVolumeSource{}},
			[]string{"at.flexVolume.driver: Required value"}},
		{"azure", source{AzureFile: &corev1.AzureFilePersistentVolumeSource{}},
			[]string{"at.azureFile.secretName: Required value", "at.azureFile.shareName: Required value"}},
		{"scaleIO", source{ScaleIO: &corev1.ScaleIOPersistentVolumeSource{}},
			[]string{"at.scaleIO.gateway: Required value",
				"at.scaleIO.system: Required value", "at.scaleIO.volumeName: Required value"}},
		{"storageOS", source{StorageOS: &corev1.StorageOSPersistentVolumeSource{}},
			[]string{"at.storageos.volumeName: Required value"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			fieldtest.Check(t, ValidatePersistentSource(&row.source, field.NewPath("at")), row.want...)
		})
	}
}
