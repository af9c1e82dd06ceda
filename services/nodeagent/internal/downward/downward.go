// Package downward computes the values that the downward API shows to a container: fields of its Pod and amounts of
// its resources. It is pure; environment variables (package podenv) and downwardAPI volumes both use it.
//
//keelson:decision
package downward

import (
	"fmt"
	"sort"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// View is the Pod as the downward API shows it. The addresses are separate from the Pod's status because the node
// knows them before the API does.
type View struct {
	Pod *corev1.Pod
	// PodIPs and HostIPs are in the order of the API; the first is the primary address.
	PodIPs, HostIPs []string
}

// Field returns the value of a fieldRef path. A missing label or annotation gives the empty string.
func (v View) Field(path string) (string, error) {
	if name, key, ok := subscript(path); ok {
		switch name {
		case "metadata.labels":
			return v.Pod.Labels[key], nil
		case "metadata.annotations":
			return v.Pod.Annotations[key], nil
		}
	}
	switch path {
	case "metadata.name":
		return v.Pod.Name, nil
	case "metadata.namespace":
		return v.Pod.Namespace, nil
	case "metadata.uid":
		return string(v.Pod.UID), nil
	case "metadata.labels":
		return Map(v.Pod.Labels), nil
	case "metadata.annotations":
		return Map(v.Pod.Annotations), nil
	}
	return v.nodeField(path)
}

// nodeField returns the fields that exist only once the Pod is on a node.
func (v View) nodeField(path string) (string, error) {
	switch path {
	case "spec.nodeName":
		return v.Pod.Spec.NodeName, nil
	case "spec.serviceAccountName":
		return v.Pod.Spec.ServiceAccountName, nil
	case "status.podIP":
		return first(v.PodIPs), nil
	case "status.podIPs":
		return strings.Join(v.PodIPs, ","), nil
	case "status.hostIP":
		return first(v.HostIPs), nil
	case "status.hostIPs":
		return strings.Join(v.HostIPs, ","), nil
	}
	return "", fmt.Errorf("unsupported fieldPath: %v", path)
}

// Map writes labels or annotations one per line as key="escaped value", sorted by key, without a last newline.
func Map(values map[string]string) string {
	keys := make([]string, 0, len(values))
	for key := range values {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	lines := make([]string, len(keys))
	for i, key := range keys {
		lines[i] = key + "=" + strconv.Quote(values[key])
	}
	return strings.Join(lines, "\n")
}

// subscript splits "metadata.labels['key']" into its field and its key.
func subscript(path string) (field, key string, ok bool) {
	inner, ok := strings.CutSuffix(path, "']")
	if !ok {
		return "", "", false
	}
	return strings.Cut(inner, "['")
}

func first(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[0]
}
