package nodeaffinity

import (
	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/scheduler/internal/nodenames"
	"keelson.dev/services/scheduler/internal/rules"
)

// maxPins bounds the nodes that are looked at one by one.
const maxPins = 16

// pins returns nodes outside of which the Pod certainly matches none, as the Pods of a DaemonSet have; nil for a Pod
// that does not confine itself by name.
func pins(spec *corev1.PodSpec) *rules.Pins {
	if host, ok := spec.NodeSelector[corev1.LabelHostname]; ok {
		return &rules.Pins{Hostnames: []string{host}}
	}
	terms := required(spec)
	if terms == nil {
		return nil
	}
	names, hostnames, ok := nodenames.Of(terms)
	if !ok || len(names)+len(hostnames) > maxPins {
		return nil
	}
	return &rules.Pins{Names: names, Hostnames: hostnames}
}
