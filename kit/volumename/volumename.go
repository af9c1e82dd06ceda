// Package volumename has the names that the daemons and the storage drivers share about volumes that
// are attached to nodes.
//
//keelson:decision
package volumename

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// csiPlugin begins the names of all volumes of CSI drivers.
const csiPlugin = "kubernetes.io/csi/"

// Unique is what a volume of a driver is called in the status of a Node, under volumesAttached and volumesInUse.
// The form is Kubernetes' own.
func Unique(driver, handle string) corev1.UniqueVolumeName {
	return corev1.UniqueVolumeName(csiPlugin + driver + "^" + handle)
}

// Parse undoes Unique; false says that the volume is no driver's.
func Parse(name corev1.UniqueVolumeName) (driver, handle string, ok bool) {
	rest, ok := strings.CutPrefix(string(name), csiPlugin)
	driver, handle, found := strings.Cut(rest, "^")
	return driver, handle, ok && found
}

// Attachment is the name of the VolumeAttachment that attaches a volume to a node. The same volume and node always have
// the same name, so that it can be made only once; the form is Kubernetes' own.
func Attachment(driver, handle, node string) string {
	sum := sha256.Sum256([]byte(handle + driver + node))
	return "csi-" + hex.EncodeToString(sum[:])
}
