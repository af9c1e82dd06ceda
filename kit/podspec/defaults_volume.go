package podspec

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/defaults"
)

// setVolumeDefaults fills a volume. One without any source is an empty directory.
func setVolumeDefaults(volume *corev1.Volume) {
	source := &volume.VolumeSource
	if ptr.AllPtrFieldsNil(source) {
		source.EmptyDir = &corev1.EmptyDirVolumeSource{}
	}
	if source.HostPath != nil {
		defaults.SetPtr(&source.HostPath.Type, corev1.HostPathUnset)
	}
	if source.Secret != nil {
		defaults.SetPtr(&source.Secret.DefaultMode, corev1.SecretVolumeSourceDefaultMode)
	}
	if source.ConfigMap != nil {
		defaults.SetPtr(&source.ConfigMap.DefaultMode, corev1.ConfigMapVolumeSourceDefaultMode)
	}
	if source.DownwardAPI != nil {
		defaults.SetPtr(&source.DownwardAPI.DefaultMode, corev1.DownwardAPIVolumeSourceDefaultMode)
		setDownwardAPIDefaults(source.DownwardAPI.Items)
	}
	setProjectedDefaults(source.Projected)
	if source.Image != nil {
		defaults.Set(&source.Image.PullPolicy, pullPolicyFor(source.Image.Reference))
	}
	if source.Ephemeral != nil && source.Ephemeral.VolumeClaimTemplate != nil {
		SetClaimDefaults(&source.Ephemeral.VolumeClaimTemplate.Spec)
	}
	setNetworkDiskDefaults(source)
}

// SetClaimDefaults fills in what the spec of a PersistentVolumeClaim leaves out, also where it stands in a template.
func SetClaimDefaults(spec *corev1.PersistentVolumeClaimSpec) {
	defaults.SetPtr(&spec.VolumeMode, corev1.PersistentVolumeFilesystem)
	roundUp(spec.Resources.Requests)
	roundUp(spec.Resources.Limits)
}

func setProjectedDefaults(projected *corev1.ProjectedVolumeSource) {
	if projected == nil {
		return
	}
	defaults.SetPtr(&projected.DefaultMode, corev1.ProjectedVolumeSourceDefaultMode)
	for i := range projected.Sources {
		source := &projected.Sources[i]
		if source.DownwardAPI != nil {
			setDownwardAPIDefaults(source.DownwardAPI.Items)
		}
		if source.ServiceAccountToken != nil {
			defaults.SetPtr(&source.ServiceAccountToken.ExpirationSeconds, 60*60)
		}
		if source.PodCertificate != nil {
			defaults.SetPtr(&source.PodCertificate.MaxExpirationSeconds, 24*60*60)
		}
	}
}

func setDownwardAPIDefaults(items []corev1.DownwardAPIVolumeFile) {
	for i := range items {
		if items[i].FieldRef != nil {
			defaults.Set(&items[i].FieldRef.APIVersion, "v1")
		}
	}
}

// setNetworkDiskDefaults fills the sources of the in-tree drivers. Nothing here mounts them, but their fields are part
// of the stable API and read back with these values.
func setNetworkDiskDefaults(source *corev1.VolumeSource) {
	if disk := source.ISCSI; disk != nil {
		defaults.Set(&disk.ISCSIInterface, "default")
	}
	if disk := source.RBD; disk != nil {
		defaults.Set(&disk.RBDPool, "rbd")
		defaults.Set(&disk.RadosUser, "admin")
		defaults.Set(&disk.Keyring, "/etc/ceph/keyring")
	}
	if disk := source.AzureDisk; disk != nil {
		defaults.SetPtr(&disk.CachingMode, corev1.AzureDataDiskCachingReadWrite)
		defaults.SetPtr(&disk.Kind, corev1.AzureSharedBlobDisk)
		defaults.SetPtr(&disk.FSType, "ext4")
		defaults.SetPtr(&disk.ReadOnly, false)
	}
	if disk := source.ScaleIO; disk != nil {
		defaults.Set(&disk.StorageMode, "ThinProvisioned")
		defaults.Set(&disk.FSType, "xfs")
	}
}
