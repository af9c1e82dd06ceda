package node

import (
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/podview"
)

// decideDevices lets a node read the claims that its Pods use, and have the slices of its own devices. Where those are
// that are created is not known yet: NodeRestriction looks at it.
func decideDevices(node string, r request) verdict {
	switch {
	case r.Resource == podview.ResourceClaims:
		return decideNamed(r)
	case r.Verb == "create":
		return allow
	case slices.Contains([]string{"list", "watch", "deletecollection"}, r.Verb):
		if !selects(r.fields, nodeField, node) {
			return refuse("can only list/watch/deletecollection resourceslices with spec.nodeName field selector")
		}
		return allow
	case r.Name == "":
		return refuse("No Object name found")
	}
	return verdict{by: bySlice}
}

// ofSlice decides by the slice that is asked for.
func ofSlice(node string, slice *resourcev1.ResourceSlice) verdict {
	if ptr.Deref(slice.Spec.NodeName, "") != node {
		return refuse(unrelated, node)
	}
	return allow
}
