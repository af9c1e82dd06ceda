package nodeaffinity

import (
	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/scheduler/internal/nodenames"
	"keelson.dev/services/scheduler/internal/rules"
)

// maxPins bounds the nodes that are looked at one by one.
const maxPins = 16

// pins returns the pins of a Pod. If the profile has terms of its own, their refusals name nodes that a hostname leaves
// out: only a pin by name, and none by hostname, leaves a node unseen.
func (a added) pins(spec *corev1.PodSpec) *rules.Pins {
	p := pins(spec)
	if p != nil {
		p.Judged = a.required != nil && len(p.Hostnames) > 0
	}
	return p
}

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
