package node

import corev1 "k8s.io/api/core/v1"

// Default keeps the two forms of a Node's Pod range the same and lets Pods use all that a Node has, unless it says
// less.
func Default(n *corev1.Node) {
	spec := &n.Spec
	switch {
	case spec.PodCIDR != "" && len(spec.PodCIDRs) == 0:
		spec.PodCIDRs = []string{spec.PodCIDR}
	case spec.PodCIDR == "" && len(spec.PodCIDRs) > 0:
		spec.PodCIDR = spec.PodCIDRs[0]
	}
	if len(n.Status.Allocatable) == 0 && len(n.Status.Capacity) > 0 {
		n.Status.Allocatable = n.Status.Capacity.DeepCopy()
	}
}
