package podworker

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// namesake is another Pod of the same namespace and name that may have something running on this node.
type namesake struct {
	uid types.UID
	// forgotten means that the API no longer has the Pod.
	forgotten bool
}

// holdReason returns why a Pod must not start yet; empty if it may. listed means that the runtime's containers were
// listed since the agent started: what an earlier agent has left running is unknown before that.
func holdReason(listed bool, namesakes []namesake) string {
	if !listed {
		return "waits until the container runtime has shown what runs on this node"
	}
	if len(namesakes) == 0 {
		return ""
	}
	first := slices.MinFunc(namesakes, func(a, b namesake) int { return strings.Compare(string(a.uid), string(b.uid)) })
	why := "still runs"
	if first.forgotten {
		why = "is being ended"
	}
	return fmt.Sprintf("waits until the Pod of the same name with the UID %s, which %s on this node, has stopped",
		first.uid, why)
}
