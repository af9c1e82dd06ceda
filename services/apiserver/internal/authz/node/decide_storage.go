package node

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"keelson.dev/kit/podview"
)

// decideStorage lets a node say which drivers it has, and read the attachments of volumes to it. The name of a CSINode
// that is created is not known yet: NodeRestriction looks at it.
func decideStorage(node string, r request) verdict {
	switch r.Resource {
	case "csinodes":
		if r.Name != node && (r.Verb != "create" || r.Name != "") {
			return refuse("can only access CSINode with the same name as the requesting node")
		}
	case "volumeattachments":
		if r.Name == "" {
			return refuse("No Object name found")
		}
		return verdict{by: byAttachment}
	}
	return allow
}

// ofAttachment decides by the attachment that is asked for.
func ofAttachment(node string, attachment *storagev1.VolumeAttachment) verdict {
	if attachment.Spec.NodeName != node {
		return refuse(unrelated, node)
	}
	return allow
}

// mayBeOfDriver reports whether the request may be for what a driver of the node identifies itself with: then the
// volumes of the node's Pods decide, when the Pods themselves do not.
func mayBeOfDriver(r request) bool {
	return r.Resource == podview.Secrets && r.Verb == "get" && r.Name != ""
}

// claims returns the claims that the Pods of the node name, each once.
func claims(node string, pods []corev1.Pod) []corev1.ObjectReference {
	var out []corev1.ObjectReference
	for i := range pods {
		pod := &pods[i]
		if pod.Spec.NodeName != node || podview.IsMirror(pod) {
			continue
		}
		podview.VisitReferences(pod, func(ref podview.Reference) {
			claim := corev1.ObjectReference{Namespace: pod.Namespace, Name: ref.Name}
			if ref.Resource == podview.PersistentVolumeClaims && !slices.Contains(out, claim) {
				out = append(out, claim)
			}
		})
	}
	return out
}

// handsToNode reports whether the volume, which is bound to the claim, has its driver on the node get the Secret that
// is asked for. What the driver's controller gets is not for nodes.
func handsToNode(r request, claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) bool {
	bound := volume.Spec.ClaimRef
	if volume.Spec.CSI == nil || bound == nil || bound.Namespace != claim.Namespace || bound.Name != claim.Name ||
		bound.UID != claim.UID {
		return false
	}
	for _, secret := range []*corev1.SecretReference{volume.Spec.CSI.NodeStageSecretRef,
		volume.Spec.CSI.NodePublishSecretRef, volume.Spec.CSI.NodeExpandSecretRef} {
		if secret != nil && secret.Namespace == r.Namespace && secret.Name == r.Name {
			return true
		}
	}
	return false
}
