package noderestriction

import (
	"fmt"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
)

// checkTokenRequest lets a Node ask for tokens of Pods only; the Pod is named with its UID.
func checkTokenRequest(request *authenticationv1.TokenRequest) error {
	ref := request.Spec.BoundObjectRef
	switch {
	case ref == nil || ref.APIVersion != "v1" || ref.Kind != "Pod" || ref.Name == "":
		return fmt.Errorf("node requested token not bound to a pod")
	case ref.UID == "":
		return fmt.Errorf("node requested token with a pod binding without a uid")
	case len(request.Spec.Audiences) > 1:
		return fmt.Errorf("spec.audiences: node may only request 0 or 1 audiences, not %d", len(request.Spec.Audiences))
	}
	return nil
}

// checkTokenPod lets a Node ask for tokens of the Pods that run on it.
func checkTokenPod(node string, request *authenticationv1.TokenRequest, pod *corev1.Pod) error {
	if request.Spec.BoundObjectRef.UID != pod.UID {
		return fmt.Errorf("the UID in the bound object reference (%s) does not match the UID in record. The object "+
			"might have been deleted and then recreated", request.Spec.BoundObjectRef.UID)
	}
	if pod.Spec.NodeName != node {
		return fmt.Errorf("node requested token bound to a pod scheduled on a different node")
	}
	return nil
}

// projects reports whether a Pod wants a token for the audience in a volume of its own. Tokens without an audience are
// for the API itself, which the node may use anyway.
func projects(pod *corev1.Pod, audience string) bool {
	return audience == "" || slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
		return v.Projected != nil && slices.ContainsFunc(v.Projected.Sources, func(s corev1.VolumeProjection) bool {
			return s.ServiceAccountToken != nil && s.ServiceAccountToken.Audience == audience
		})
	})
}

// wants reports whether a CSI driver wants a token of the Pod for the audience.
func wants(driver *storagev1.CSIDriver, audience string) bool {
	return slices.ContainsFunc(driver.Spec.TokenRequests, func(r storagev1.TokenRequest) bool {
		return r.Audience == audience
	})
}

// driversInline names the drivers of volumes that the Pod itself describes.
func driversInline(pod *corev1.Pod) []string {
	var names []string
	for _, v := range pod.Spec.Volumes {
		if v.CSI != nil {
			names = append(names, v.CSI.Driver)
		}
	}
	return names
}
