package attachdetach

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/kit/events"
)

// eventSource is the source that users see on the events.
const eventSource = "attachdetach-controller"

const (
	reasonFailed   = "FailedAttachVolume"
	reasonAttached = "SuccessfulAttachVolume"
)

// multiAttach reports that another node has a volume that only one node may have. It names Pods in the same
// namespace and only counts those in other namespaces.
func multiAttach(volume string, pod *corev1.Pod, users []User) events.Event {
	var names []string
	others := 0
	for _, user := range users {
		if user.Pod.Namespace == pod.Namespace {
			names = append(names, user.Pod.Name)
		} else {
			others++
		}
	}
	slices.Sort(names)
	why := "Volume is already exclusively attached to one node and can't be attached to another"
	switch {
	case len(names) > 0 && others > 0:
		why = fmt.Sprintf("Volume is already used by pod(s) %s and %d pod(s) in different namespaces",
			strings.Join(names, ", "), others)
	case len(names) > 0:
		why = "Volume is already used by pod(s) " + strings.Join(names, ", ")
	case others > 0:
		why = fmt.Sprintf("Volume is already used by %d pod(s) in different namespaces", others)
	}
	return events.Warning(reasonFailed, "Multi-Attach error for volume %q %s", volume, why)
}

// attachFailed reports the driver's error message.
func attachFailed(volume, message string) events.Event {
	return events.Warning(reasonFailed, "AttachVolume.Attach failed for volume %q : %s", volume, message)
}

// attached reports that the volume is attached to the Pod's node.
func attached(volume string) events.Event {
	return events.Normal(reasonAttached, "AttachVolume.Attach succeeded for volume %q", volume)
}
