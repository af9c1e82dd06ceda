// Package evict ends Pods that use more of the node's disk than their limits: of an emptyDir volume with a
// sizeLimit, of a container's ephemeral-storage, or of all containers together. A volume in memory needs no check,
// since its file system has that size.
package evict

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/component-helpers/resource"

	"keelson.dev/kit/podview"
	"keelson.dev/services/nodeagent/internal/diskusage"
	"keelson.dev/services/nodeagent/internal/podstate"
)

// grace is how long an evicted Pod's containers may take to stop: what they write meanwhile costs the node.
const grace = time.Second

// limited returns the volumes of a Pod whose disk usage is to be measured. A Pod that has ended writes no more.
func limited(pod *corev1.Pod) []*corev1.Volume {
	if podview.IsTerminal(pod) {
		return nil
	}
	var out []*corev1.Volume
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if diskusage.OnDisk(v) && v.EmptyDir.SizeLimit != nil && v.EmptyDir.SizeLimit.Sign() > 0 {
			out = append(out, v)
		}
	}
	return out
}

// decideVolume returns why a Pod is evicted for one of its volumes; nil if it is not.
func decideVolume(v *corev1.Volume, usage diskusage.Usage) *podstate.Outcome {
	limit := v.EmptyDir.SizeLimit
	switch {
	case usage.TooDeep:
		return evicted("Folders of EmptyDir volume %q are nested deeper than %d, so that its limit %q cannot be held. ",
			v.Name, diskusage.MaxDepth, limit.String())
	case usage.Bytes <= limit.Value():
		return nil
	}
	return evicted("Usage of EmptyDir volume %q exceeds the limit %q. ", v.Name, limit.String())
}

// podLimit returns how much disk all containers of a Pod together may use; false if none has a limit, or the Pod
// has ended.
func podLimit(pod *corev1.Pod) (apiresource.Quantity, bool) {
	limit, ok := resource.PodLimits(pod, resource.PodResourcesOptions{})[corev1.ResourceEphemeralStorage]
	return limit, ok && !podview.IsTerminal(pod)
}

// decidePod returns why a Pod is evicted for its disk usage; nil if it is not. It checks the Pod as a whole first,
// including volumes, then each of its main containers.
func decidePod(pod *corev1.Pod, usage *diskusage.Pod, parts diskusage.Parts) *podstate.Outcome {
	limit, ok := podLimit(pod)
	if !ok {
		return nil
	}
	all := usage.Of(parts)
	if all.TooDeep {
		return evicted("Folders of the Pod are nested deeper than %d, so that the total limit of containers %s cannot "+
			"be held. ", diskusage.MaxDepth, limit.String())
	}
	if all.Bytes > limit.Value() {
		return evicted("Pod ephemeral local storage usage exceeds the total limit of containers %s. ", limit.String())
	}
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		own, ok := c.Resources.Limits[corev1.ResourceEphemeralStorage]
		if ok && usage.Containers[c.Name].Of(parts).Bytes > own.Value() {
			return evicted("Container %s exceeded its local ephemeral storage limit %q. ", c.Name, own.String())
		}
	}
	return nil
}

// evicted returns the outcome of a Pod that was evicted for its own usage: it gets no condition DisruptionTarget.
func evicted(format string, args ...any) *podstate.Outcome {
	return &podstate.Outcome{Reason: podstate.ReasonEvicted, Message: fmt.Sprintf(format, args...), Grace: grace}
}
