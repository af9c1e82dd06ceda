package alwayspullimages

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// pulled is an image that a Pod takes.
type pulled struct {
	of     string
	image  string
	policy *corev1.PullPolicy
}

// images are all that the Pod takes, those of volumes with them.
func images(pod *corev1.Pod) []pulled {
	var all []pulled
	add := func(kind string, containers []corev1.Container) {
		for i := range containers {
			c := &containers[i]
			all = append(all, pulled{kind + " " + c.Name, c.Image, &c.ImagePullPolicy})
		}
	}
	add("init container", pod.Spec.InitContainers)
	add("container", pod.Spec.Containers)
	for i := range pod.Spec.EphemeralContainers {
		c := &pod.Spec.EphemeralContainers[i]
		all = append(all, pulled{"ephemeral container " + c.Name, c.Image, &c.ImagePullPolicy})
	}
	for i := range pod.Spec.Volumes {
		if v := &pod.Spec.Volumes[i]; v.Image != nil {
			all = append(all, pulled{"volume " + v.Name, v.Image.Reference, &v.Image.PullPolicy})
		}
	}
	return all
}

// set makes the node pull what was not there in old, which is nil for a new Pod. What was there keeps its policy, which
// cannot change.
func set(pod, old *corev1.Pod) {
	had := sets.New[string]()
	if old != nil {
		for _, p := range images(old) {
			had.Insert(p.of)
		}
	}
	for _, p := range images(pod) {
		if !had.Has(p.of) {
			*p.policy = corev1.PullAlways
		}
	}
}

// check refuses an image that is not always pulled, unless the Pod had it before.
func check(pod, old *corev1.Pod) error {
	had := sets.New[string]()
	if old != nil {
		for _, p := range images(old) {
			had.Insert(p.image)
		}
	}
	for _, p := range images(pod) {
		if *p.policy != corev1.PullAlways && !had.Has(p.image) {
			return fmt.Errorf("the image pull policy of %s is %q, it must be %q", p.of, *p.policy, corev1.PullAlways)
		}
	}
	return nil
}
