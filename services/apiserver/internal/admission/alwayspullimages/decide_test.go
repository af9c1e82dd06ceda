package alwayspullimages

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func pod(policy corev1.PullPolicy, image string) *corev1.Pod {
	return &corev1.Pod{Spec: corev1.PodSpec{
		InitContainers: []corev1.Container{{Name: "i", Image: image, ImagePullPolicy: policy}},
		Containers:     []corev1.Container{{Name: "c", Image: image, ImagePullPolicy: policy}},
		EphemeralContainers: []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
			Name: "e", Image: image, ImagePullPolicy: policy}}},
		Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
			Image: &corev1.ImageVolumeSource{Reference: image, PullPolicy: policy}}}, {Name: "w"}},
	}}
}

func TestDecide(t *testing.T) {
	made := pod(corev1.PullIfNotPresent, "a")
	if check(made, nil) == nil {
		t.Error("a new Pod with another policy is let through")
	}
	set(made, nil)
	for _, p := range images(made) {
		if *p.policy != corev1.PullAlways {
			t.Errorf("%s: %s", p.of, *p.policy)
		}
	}
	if err := check(made, nil); err != nil {
		t.Error(err)
	}
	old, same := pod(corev1.PullIfNotPresent, "a"), pod(corev1.PullIfNotPresent, "a")
	set(same, old)
	if *images(same)[0].policy != corev1.PullIfNotPresent {
		t.Error("what was there has another policy")
	}
	if err := check(same, old); err != nil {
		t.Errorf("an update of something else: %v", err)
	}
	if err := check(pod(corev1.PullIfNotPresent, "b"), old); err == nil || err.Error() !=
		`the image pull policy of init container i is "IfNotPresent", it must be "Always"` {
		t.Errorf("another image: %v", err)
	}
	added := pod(corev1.PullNever, "a")
	added.Spec.EphemeralContainers[0].Name = "debug"
	set(added, old)
	if got := added.Spec.EphemeralContainers[0].ImagePullPolicy; got != corev1.PullAlways {
		t.Errorf("an ephemeral container that comes later: %s", got)
	}
}
