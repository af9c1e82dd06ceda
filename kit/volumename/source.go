package volumename

import (
	"cmp"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// migrated are the CSI drivers that took over from the volume plugins that Kubernetes once had.
var migrated = map[string]string{
	"kubernetes.io/aws-ebs":         "ebs.csi.aws.com",
	"kubernetes.io/azure-disk":      "disk.csi.azure.com",
	"kubernetes.io/cinder":          "cinder.csi.openstack.org",
	"kubernetes.io/gce-pd":          "pd.csi.storage.gke.io",
	"kubernetes.io/portworx-volume": "pxd.portworx.com",
}

// DriverOf returns the CSI driver of a class's volumes, given the class's provisioner.
func DriverOf(provisioner string) string { return cmp.Or(migrated[provisioner], provisioner) }

// CSI returns the driver and the handle of a volume; neither for one that is no driver's.
func CSI(pv *corev1.PersistentVolume) (driver, handle string) {
	switch s := &pv.Spec.PersistentVolumeSource; {
	case s.CSI != nil:
		return s.CSI.Driver, s.CSI.VolumeHandle
	case s.AWSElasticBlockStore != nil:
		id := s.AWSElasticBlockStore.VolumeID // with its zone before it, or alone
		return DriverOf("kubernetes.io/aws-ebs"), id[strings.LastIndexByte(id, '/')+1:]
	case s.AzureDisk != nil:
		return DriverOf("kubernetes.io/azure-disk"), s.AzureDisk.DataDiskURI
	case s.Cinder != nil:
		return DriverOf("kubernetes.io/cinder"), s.Cinder.VolumeID
	case s.GCEPersistentDisk != nil:
		zone := cmp.Or(pv.Labels[corev1.LabelTopologyZone], pv.Labels[corev1.LabelFailureDomainBetaZone])
		return DriverOf("kubernetes.io/gce-pd"), persistentDisk(zone, s.GCEPersistentDisk.PDName)
	case s.PortworxVolume != nil:
		return DriverOf("kubernetes.io/portworx-volume"), s.PortworxVolume.VolumeID
	}
	return "", ""
}

// persistentDisk is the handle of a GCE disk whose PersistentVolume has the label of a zone, of several with two
// underscores between them, or none.
func persistentDisk(zones, name string) string {
	place := "zones/" + cmp.Or(zones, "UNSPECIFIED")
	if first, _, several := strings.Cut(zones, "__"); several {
		place = "regions/" + first[:max(strings.LastIndexByte(first, '-'), 0)]
	}
	return "projects/UNSPECIFIED/" + place + "/disks/" + name
}
