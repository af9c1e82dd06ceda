// Package evict ends Pods that use more of the node's disk than they may: an emptyDir volume with a sizeLimit. A volume
// of memory needs no watching, since its file system has that size.
package evict

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/kit/podview"
	"keelson.dev/services/nodeagent/internal/podstate"
)

// reasonEvicted is the Pod's reason and the event's, in the field's words.
const reasonEvicted = "Evicted"

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
		if source := v.EmptyDir; source != nil && source.Medium == corev1.StorageMediumDefault &&
			source.SizeLimit != nil && source.SizeLimit.Sign() > 0 {
			out = append(out, v)
		}
	}
	return out
}

// Usage is what a volume holds.
type Usage struct {
	Bytes int64
	// TooDeep says that its folders are nested deeper than anybody could look.
	TooDeep bool
}

// decide returns why a Pod is evicted for one of its volumes; nil leaves it alone.
func decide(v *corev1.Volume, usage Usage) *podstate.Outcome {
	limit := v.EmptyDir.SizeLimit
	message := fmt.Sprintf("Usage of EmptyDir volume %q exceeds the limit %q. ", v.Name, limit.String())
	switch {
	case usage.TooDeep:
		message = fmt.Sprintf(
			"Folders of EmptyDir volume %q are nested deeper than %d, so that its limit %q cannot be held. ",
			v.Name, maxDepth, limit.String())
	case usage.Bytes <= limit.Value():
		return nil
	}
	return &podstate.Outcome{Reason: reasonEvicted, Message: message, Grace: grace}
}
