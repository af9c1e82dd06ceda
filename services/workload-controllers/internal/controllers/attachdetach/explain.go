package attachdetach

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/kit/introspect"
	"keelson.dev/services/workload-controllers/internal/storeindex"
)

// explain describes what the volumes of a Pod wait for, by the decisions that act. It returns false for a Pod
// without a node, and for one whose volumes this controller neither attaches nor warns about.
func (c *Controller) explain(_ context.Context, namespace, name string) (introspect.Explanation, bool) {
	pod := storeindex.Get[corev1.Pod](c.stores.pods, storeindex.Key(namespace, name))
	if pod == nil || pod.Spec.NodeName == "" {
		return introspect.Explanation{}, false
	}
	in := c.stores.lookAtPod(pod)
	if len(in.Volumes)+len(in.Unguarded) == 0 {
		return introspect.Explanation{}, false
	}
	return podAccount(in).Explanation(), true
}

// lookAtPod decides about the volumes of a Pod.
func (s *stores) lookAtPod(pod *corev1.Pod) PodVolumes {
	in := PodVolumes{Pod: pod, Node: storeindex.Get[corev1.Node](s.nodes, pod.Spec.NodeName)}
	for _, pv := range s.pvsOfPod(pod) {
		volume, ok := volumeOf(pv)
		if about := s.lookAtVolume(volume); ok && about.Required {
			in.Volumes, in.Plans = append(in.Volumes, about), append(in.Plans, DecideVolume(about))
		} else if isUnguarded(pv) {
			in.Unguarded = append(in.Unguarded, pv)
		}
	}
	return in
}
