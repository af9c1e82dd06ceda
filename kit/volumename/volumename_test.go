package volumename_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/kit/volumename"
)

// The sum is of "vol-1disk.example.comnode-a": handle, driver, node.
func TestNames(t *testing.T) {
	unique := volumename.Unique("disk.example.com", "vol-1")
	if want := corev1.UniqueVolumeName("kubernetes.io/csi/disk.example.com^vol-1"); unique != want {
		t.Errorf("the volume is called %s, want %s", unique, want)
	}
	const want = "csi-06957212cb95986c44d4ad7358e845c337f828970b6197ad137f2a4a80c8ac8e"
	if got := volumename.Attachment("disk.example.com", "vol-1", "node-a"); got != want {
		t.Errorf("the attachment is called %s, want %s", got, want)
	}
}

// A handle may hold what separates it from its driver.
func TestParse(t *testing.T) {
	driver, handle, ok := volumename.Parse(volumename.Unique("disk.example.com", "a^b/c"))
	if driver != "disk.example.com" || handle != "a^b/c" || !ok {
		t.Errorf("read back %q of %q, %t", handle, driver, ok)
	}
	for _, name := range []corev1.UniqueVolumeName{"kubernetes.io/csi/disk.example.com", "kubernetes.io/nfs/a^b", ""} {
		if driver, handle, ok := volumename.Parse(name); ok {
			t.Errorf("%q is %q of %q", name, handle, driver)
		}
	}
}

type source = corev1.PersistentVolumeSource

func TestTheDriverAndHandleOfAVolume(t *testing.T) {
	const noZone = ""
	ebs := func(id string) source {
		return source{AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: id}}
	}
	disk := source{GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{PDName: "d"}}
	for name, row := range map[string]struct {
		source               source
		zone, driver, handle string
	}{
		"of a driver": {source{CSI: &corev1.CSIPersistentVolumeSource{Driver: "disk.example.com", VolumeHandle: "v"}},
			noZone, "disk.example.com", "v"},
		"EBS with its zone": {ebs("aws://eu-1a/vol-2"), noZone, "ebs.csi.aws.com", "vol-2"},
		"EBS alone":         {ebs("vol-2"), noZone, "ebs.csi.aws.com", "vol-2"},
		"Azure": {source{AzureDisk: &corev1.AzureDiskVolumeSource{DiskName: "n", DataDiskURI: "/subscriptions/x"}},
			noZone, "disk.csi.azure.com", "/subscriptions/x"},
		"Cinder": {source{Cinder: &corev1.CinderPersistentVolumeSource{VolumeID: "c"}}, noZone,
			"cinder.csi.openstack.org", "c"},
		"Portworx": {source{PortworxVolume: &corev1.PortworxVolumeSource{VolumeID: "p"}}, noZone, "pxd.portworx.com",
			"p"},
		"GCE in a zone": {disk, "eu-west1-b", "pd.csi.storage.gke.io",
			"projects/UNSPECIFIED/zones/eu-west1-b/disks/d"},
		"GCE in two zones": {disk, "eu-west1-b__eu-west1-c", "pd.csi.storage.gke.io",
			"projects/UNSPECIFIED/regions/eu-west1/disks/d"},
		"GCE without a zone": {disk, noZone, "pd.csi.storage.gke.io",
			"projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d"},
		"of no driver": {source{NFS: &corev1.NFSVolumeSource{Server: "s", Path: "/"}}, noZone, "", ""},
	} {
		pv := &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: row.source}}
		if row.zone != noZone {
			pv.ObjectMeta = metav1.ObjectMeta{Labels: map[string]string{"topology.kubernetes.io/zone": row.zone}}
		}
		if driver, handle := volumename.CSI(pv); driver != row.driver || handle != row.handle {
			t.Errorf("%s: %q of %q, want %q of %q", name, handle, driver, row.handle, row.driver)
		}
	}
}

func TestTheDriverOfAClass(t *testing.T) {
	for provisioner, want := range map[string]string{"kubernetes.io/gce-pd": "pd.csi.storage.gke.io",
		"x.example.com": "x.example.com"} {
		if got := volumename.DriverOf(provisioner); got != want {
			t.Errorf("the driver of %s is %s, want %s", provisioner, got, want)
		}
	}
}
