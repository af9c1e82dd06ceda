// Package csivolume sets up the volumes of CSI drivers and takes them down again. All that it has to know is on disk,
// at the kubelet's paths:
//
//	<Dir>/pods/<uid>/volumes/kubernetes.io~csi/<name>/vol_data.json      what a Pod uses; removed when unpublished
//	<Dir>/pods/<uid>/volumes/kubernetes.io~csi/<name>/mount              where the driver mounts it for the Pod
//	<Dir>/plugins/kubernetes.io/csi/volumeDevices/publish/<name>/<uid>   where it puts a block device instead
//	<Dir>/plugins/kubernetes.io/csi/<driver>/<hash>/vol_data.json        what is staged; removed when unstaged
//	<Dir>/plugins/kubernetes.io/csi/<driver>/<hash>/globalmount          where the driver stages it for the node
//	<Dir>/csi-unpublish/<hash>.json                                      what a removed Pod has left to unpublish
//
// The first of them is written before the Node lists the volume as in use, and that happens before any call to the
// driver. An agent that starts carries on where another was killed: the calls of a driver may be repeated.
package csivolume

import (
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"

	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/nodeagent/internal/podfiles"
)

// KindName is the name of the folder of a Pod's CSI volumes.
const KindName = "kubernetes.io~csi"

// recordName is the name of the records in the folders of volumes.
const recordName = "vol_data.json"

type paths struct{ podfiles.Root }

// pod returns the folder of one volume of a Pod.
func (p paths) pod(uid types.UID, name string) string { return p.Volume(uid, KindName, name) }

// target returns where the driver publishes a volume with a file system.
func (p paths) target(uid types.UID, name string) string {
	return filepath.Join(p.pod(uid, name), "mount")
}

// devices is the folder of all block devices, which no driver's volumes are in.
const devices = "volumeDevices"

// device returns where the driver publishes a block device.
func (p paths) device(uid types.UID, name string) string {
	return filepath.Join(p.stagedDir(), devices, "publish", name, string(uid))
}

// published returns where the driver publishes it.
func (p paths) published(at place, block bool) string {
	if block {
		return p.device(at.pod, at.name)
	}
	return p.target(at.pod, at.name)
}

// stagedDir returns the folder of all staged volumes, by driver and hash.
func (p paths) stagedDir() string { return filepath.Join(p.Dir, "plugins", "kubernetes.io", "csi") }

// stage returns the folder of one staged volume.
func (p paths) stage(v volumeID) string {
	return filepath.Join(p.stagedDir(), v.driver, hash(v.handle))
}

// staging returns where the driver stages it.
func (p paths) staging(v volumeID) string { return filepath.Join(p.stage(v), "globalmount") }

// leftDir returns the folder of what is still to be unpublished for removed Pods.
func (p paths) leftDir() string { return filepath.Join(p.Dir, "csi-unpublish") }

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// volumeID identifies one volume of one driver.
type volumeID struct{ driver, handle string }
