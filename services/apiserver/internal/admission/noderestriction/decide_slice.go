package noderestriction

import (
	"fmt"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"
)

// checkSlice lets a Node tell of devices that it has itself. Where those of a slice are never changes, and whose slices
// a Node may write the Node authorizer says.
func checkSlice(node string, created *resourcev1.ResourceSlice) error {
	if ptr.Deref(created.Spec.NodeName, "") != node {
		return fmt.Errorf("node %q can only create ResourceSlices with spec.nodeName set to itself", node)
	}
	return nil
}
