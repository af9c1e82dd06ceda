// Package evict ends Pods that use more of the node's disk than they may: an emptyDir volume with a sizeLimit, a
// container with a limit of ephemeral-storage, or all that have one together. A volume of memory needs no watching,
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

// grace is how long an evicted Pod's containers may take to stop: what they write meanwhile is the node's loss.
const grace = time.Second

// limited returns the volumes of a Pod whose use of the disk is to be measured. A Pod that has ended writes no more.
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

// decideVolume returns why a Pod is evicted for one of its volumes; nil leaves it alone.
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

// podLimit returns what all containers of a Pod that have a limit may take of the disk together; false if none has one,
// or the Pod has ended.
func podLimit(pod *corev1.Pod) (apiresource.Quantity, bool) {
	limit, ok := resource.PodLimits(pod, resource.PodResourcesOptions{})[corev1.ResourceEphemeralStorage]
	return limit, ok && !podview.IsTerminal(pod)
}

// decidePod returns why a Pod is evicted for what it takes of the disk; nil leaves it alone. The Pod as a whole comes
// first, volumes included, then its main containers, each for itself.
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

// evicted is the outcome of a Pod that has only itself to blame: it gets no condition DisruptionTarget.
func evicted(format string, args ...any) *podstate.Outcome {
	return &podstate.Outcome{Reason: podstate.ReasonEvicted, Message: fmt.Sprintf(format, args...), Grace: grace}
}
