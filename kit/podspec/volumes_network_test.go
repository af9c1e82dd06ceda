package podspec

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// Each kind of disk as its own documentation writes it: nothing is said of any of them.
func TestCompleteNetworkDisks(t *testing.T) {
	secret := &corev1.LocalObjectReference{Name: "s"}
	for name, source := range map[string]corev1.VolumeSource{
		"nfs": {NFS: &corev1.NFSVolumeSource{Server: "s", Path: "/p"}},
		"iscsi": {ISCSI: &corev1.ISCSIVolumeSource{TargetPortal: "10.0.0.1:3260", IQN: "iqn.2001-04.com.example:d",
			DiscoveryCHAPAuth: true, SecretRef: secret}},
		"fc by target": {FC: &corev1.FCVolumeSource{TargetWWNs: []string{"5"}, Lun: ptr.To[int32](0)}},
		"fc by id":     {FC: &corev1.FCVolumeSource{WWIDs: []string{"3"}}},
		"rbd":          {RBD: &corev1.RBDVolumeSource{CephMonitors: []string{"m"}, RBDImage: "i"}},
		"cephfs":       {CephFS: &corev1.CephFSVolumeSource{Monitors: []string{"m"}}},
		"gce":          {GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{PDName: "d"}},
		"aws":          {AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: "v"}},
		"git":          {GitRepo: &corev1.GitRepoVolumeSource{Repository: "r", Directory: "."}},
		"glusterfs":    {Glusterfs: &corev1.GlusterfsVolumeSource{EndpointsName: "e", Path: "p"}},
		"flex":         {FlexVolume: &corev1.FlexVolumeSource{Driver: "example.com/d"}},
		"cinder":       {Cinder: &corev1.CinderVolumeSource{VolumeID: "v", SecretRef: secret}},
		"flocker":      {Flocker: &corev1.FlockerVolumeSource{DatasetName: "d"}},
		"flocker uuid": {Flocker: &corev1.FlockerVolumeSource{DatasetUUID: "u"}},
		"azure file":   {AzureFile: &corev1.AzureFileVolumeSource{SecretName: "s", ShareName: "h"}},
		"azure disk": {AzureDisk: &corev1.AzureDiskVolumeSource{DiskName: "d", DataDiskURI: "https://example.com/d",
			CachingMode: ptr.To(corev1.AzureDataDiskCachingNone), Kind: ptr.To(corev1.AzureDedicatedBlobDisk)}},
		"vsphere":  {VsphereVolume: &corev1.VsphereVirtualDiskVolumeSource{VolumePath: "p"}},
		"photon":   {PhotonPersistentDisk: &corev1.PhotonPersistentDiskVolumeSource{PdID: "p"}},
		"portworx": {PortworxVolume: &corev1.PortworxVolumeSource{VolumeID: "v"}},
		"quobyte":  {Quobyte: &corev1.QuobyteVolumeSource{Registry: "r:1", Volume: "v"}},
		"scaleio":  {ScaleIO: &corev1.ScaleIOVolumeSource{Gateway: "g", System: "s", VolumeName: "v"}},
		"storageos": {StorageOS: &corev1.StorageOSVolumeSource{VolumeName: "v", VolumeNamespace: "n",
			SecretRef: secret}},
	} {
		row{name: name, change: withVolume(source)}.run(t)
	}
}

// A number of a disk or of a partition lies between 0 and 255.
func TestNumbersOfDisks(t *testing.T) {
	kinds := map[string]func(int32) corev1.VolumeSource{
		"iscsi.lun": func(n int32) corev1.VolumeSource {
			return corev1.VolumeSource{ISCSI: &corev1.ISCSIVolumeSource{TargetPortal: "p", IQN: "iqn.2001-04.a:b",
				Lun: n}}
		},
		"fc.lun": func(n int32) corev1.VolumeSource {
			return corev1.VolumeSource{FC: &corev1.FCVolumeSource{TargetWWNs: []string{"5"}, Lun: &n}}
		},
		"gcePersistentDisk.partition": func(n int32) corev1.VolumeSource {
			return corev1.VolumeSource{GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{PDName: "d",
				Partition: n}}
		},
		"awsElasticBlockStore.partition": func(n int32) corev1.VolumeSource {
			return corev1.VolumeSource{AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: "v",
				Partition: n}}
		},
	}
	for at, source := range kinds {
		for number, text := range map[int32]string{-1: "-1", 0: "", 255: "", 256: "256"} {
			var want []string
			if text != "" {
				want = []string{"spec.volumes[0]." + at + ": Invalid value: " + text +
					": must be between 0 and 255, inclusive"}
			}
			row{name: at + " " + text, change: withVolume(source(number)), want: want}.run(t)
		}
	}
}

func TestMalformedNetworkDisks(t *testing.T) {
	const at = "spec.volumes[0]."
	iscsi := func(change func(*corev1.ISCSIVolumeSource)) func(*corev1.PodSpec) {
		disk := corev1.ISCSIVolumeSource{TargetPortal: "p", IQN: "iqn.2001-04.a:b"}
		change(&disk)
		return withVolume(corev1.VolumeSource{ISCSI: &disk})
	}
	runAll(t, []row{
		{name: "iscsi asks for a password of none", change: iscsi(func(d *corev1.ISCSIVolumeSource) {
			d.DiscoveryCHAPAuth = true
		}), want: []string{at + `iscsi.secretRef: Required value`}},
		{name: "iscsi without a password", change: iscsi(func(*corev1.ISCSIVolumeSource) {})},
		{name: "iscsi with a nameless Secret", change: iscsi(func(d *corev1.ISCSIVolumeSource) {
			d.SessionCHAPAuth, d.SecretRef = true, &corev1.LocalObjectReference{}
		}), want: []string{at + `iscsi.secretRef.name: Required value`}},
		{name: "git that climbs", change: withVolume(corev1.VolumeSource{
			GitRepo: &corev1.GitRepoVolumeSource{Repository: "r", Directory: "a/../.."}}),
			want: []string{at + `gitRepo.directory: Invalid value: "a/../..": must not contain '..'`}},
		{name: "flex", change: withVolume(corev1.VolumeSource{FlexVolume: &corev1.FlexVolumeSource{Driver: "a b"}}),
			want: []string{at + `flexVolume.driver: Invalid value: "a b": ` + notAName}},
		{name: "flocker of another place", change: withVolume(corev1.VolumeSource{
			Flocker: &corev1.FlockerVolumeSource{DatasetName: "/d"}}),
			want: []string{at + `flocker.datasetName: Invalid value: "/d": must be a relative path`}},
		{name: "azure disk", change: withVolume(corev1.VolumeSource{AzureDisk: &corev1.AzureDiskVolumeSource{
			DiskName: "d", DataDiskURI: "u", CachingMode: ptr.To(corev1.AzureDataDiskCachingMode("x"))}}),
			want: []string{at +
				`azureDisk.cachingMode: Unsupported value: "x": supported values: "None", "ReadOnly", "ReadWrite"`}},
		{name: "storageos", change: withVolume(corev1.VolumeSource{StorageOS: &corev1.StorageOSVolumeSource{
			VolumeName: "a.b", VolumeNamespace: "c.d", SecretRef: &corev1.LocalObjectReference{}}}),
			want: []string{at + `storageos.secretRef.name: Required value`,
				at + `storageos.volumeName: Invalid value: "a.b": must not contain dots`,
				at + `storageos.volumeNamespace: Invalid value: "c.d": must not contain dots`}},
	})
}
