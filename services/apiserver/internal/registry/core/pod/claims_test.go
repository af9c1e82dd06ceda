package pod

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/fieldcheck/fieldtest"
)

func TestClaimStatuses(t *testing.T) {
	said := func(name string, claim *string) corev1.PodResourceClaimStatus {
		return corev1.PodResourceClaimStatus{Name: name, ResourceClaimName: claim}
	}
	const at = "status.resourceClaimStatuses"
	for name, row := range map[string]struct {
		statuses []corev1.PodResourceClaimStatus
		want     []string
	}{
		"none":        {},
		"one of each": {[]corev1.PodResourceClaimStatus{said("gpu", ptr.To("p-gpu-x")), said("nic", nil)}, nil},
		"one twice": {[]corev1.PodResourceClaimStatus{said("gpu", nil), said("gpu", nil)},
			[]string{at + `[1].name: Duplicate value: "gpu"`}},
		"one not there": {[]corev1.PodResourceClaimStatus{said("x", nil)},
			[]string{at + `[0].name: Invalid value: "x": must match`}},
		"a malformed one": {[]corev1.PodResourceClaimStatus{said("gpu", ptr.To("A"))},
			[]string{at + `[0].resourceClaimName: Invalid value: "A"`}},
		"no name": {[]corev1.PodResourceClaimStatus{said("gpu", ptr.To(""))},
			[]string{at + `[0].resourceClaimName: Invalid value: ""`}},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{Spec: corev1.PodSpec{ResourceClaims: []corev1.PodResourceClaim{{Name: "gpu"},
				{Name: "nic"}}},
				Status: corev1.PodStatus{Phase: corev1.PodPending, ResourceClaimStatuses: row.statuses}}
			fieldtest.Check(t, ValidateStatusUpdate(pod, pod), row.want...)
		})
	}
}
