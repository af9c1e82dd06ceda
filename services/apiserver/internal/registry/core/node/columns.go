package node

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/apiserver/internal/registry/table"
	"keelson.dev/services/apiserver/internal/resource"
)

const (
	// roleLabelPrefix starts the labels that name a Node's roles.
	roleLabelPrefix = "node-role.kubernetes.io/"
	roleLabel       = "kubernetes.io/role"
)

var (
	addressHelp = corev1.NodeStatus{}.SwaggerDoc()["addresses"]
	infoHelp    = corev1.NodeSystemInfo{}.SwaggerDoc()
)

// columns are what kubectl get nodes prints.
var columns = resource.NewColumns(
	resource.NameColumn[*corev1.Node](),
	resource.Column("Status", "string", "The status of the node", func(n *corev1.Node) any { return statusText(n) }),
	resource.Column("Roles", "string", "The roles of the node",
		func(n *corev1.Node) any { return table.Joined(roles(n), ",") }),
	resource.AgeColumn[*corev1.Node](),
	resource.Column("Version", "string", infoHelp["kubeletVersion"],
		func(n *corev1.Node) any { return n.Status.NodeInfo.KubeletVersion }),
	resource.Column("Internal-IP", "string", addressHelp,
		func(n *corev1.Node) any { return address(n, corev1.NodeInternalIP) }).Wide(),
	resource.Column("External-IP", "string", addressHelp,
		func(n *corev1.Node) any { return address(n, corev1.NodeExternalIP) }).Wide(),
	resource.Column("OS-Image", "string", infoHelp["osImage"],
		func(n *corev1.Node) any { return orUnknown(n.Status.NodeInfo.OSImage) }).Wide(),
	resource.Column("Kernel-Version", "string", infoHelp["kernelVersion"],
		func(n *corev1.Node) any { return orUnknown(n.Status.NodeInfo.KernelVersion) }).Wide(),
	resource.Column("Container-Runtime", "string", infoHelp["containerRuntimeVersion"],
		func(n *corev1.Node) any { return orUnknown(n.Status.NodeInfo.ContainerRuntimeVersion) }).Wide(),
)

// statusText is the Ready condition in a word, and whether the Node takes new Pods.
func statusText(n *corev1.Node) string {
	text := "Unknown"
	i := slices.IndexFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeReady })
	if i >= 0 {
		text = "NotReady"
		if n.Status.Conditions[i].Status == corev1.ConditionTrue {
			text = "Ready"
		}
	}
	if n.Spec.Unschedulable {
		text += ",SchedulingDisabled"
	}
	return text
}

func roles(n *corev1.Node) []string {
	var found []string
	for label, value := range n.Labels {
		if role, ok := strings.CutPrefix(label, roleLabelPrefix); ok && role != "" {
			found = append(found, role)
		} else if label == roleLabel && value != "" {
			found = append(found, value)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

func address(n *corev1.Node, kind corev1.NodeAddressType) string {
	for _, a := range n.Status.Addresses {
		if a.Type == kind {
			return a.Address
		}
	}
	return table.None
}

func orUnknown(text string) string {
	if text == "" {
		return table.Unknown
	}
	return text
}
