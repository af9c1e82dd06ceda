package node

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/services/apiserver/internal/registry/rest"
	"keelson.dev/services/apiserver/internal/registry/table"
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
var columns = rest.Columns[*corev1.Node]{
	Definitions: []metav1.TableColumnDefinition{
		rest.NameColumn(),
		rest.Column("Status", "string", "The status of the node"),
		rest.Column("Roles", "string", "The roles of the node"),
		rest.AgeColumn(),
		rest.Column("Version", "string", infoHelp["kubeletVersion"]),
		rest.WideColumn("Internal-IP", "string", addressHelp),
		rest.WideColumn("External-IP", "string", addressHelp),
		rest.WideColumn("OS-Image", "string", infoHelp["osImage"]),
		rest.WideColumn("Kernel-Version", "string", infoHelp["kernelVersion"]),
		rest.WideColumn("Container-Runtime", "string", infoHelp["containerRuntimeVersion"]),
	},
	Row: row,
}

func row(n *corev1.Node, now time.Time) []any {
	info := &n.Status.NodeInfo
	return []any{
		n.Name, statusText(n), table.Joined(roles(n), ","), rest.Age(n.CreationTimestamp, now), info.KubeletVersion,
		address(n, corev1.NodeInternalIP), address(n, corev1.NodeExternalIP),
		orUnknown(info.OSImage), orUnknown(info.KernelVersion), orUnknown(info.ContainerRuntimeVersion),
	}
}

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
