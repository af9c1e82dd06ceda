package app

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/kit/events"
	"keelson.dev/services/nodeagent/internal/lifecycle"
	"keelson.dev/services/nodeagent/internal/probe"
)

// recorder writes events about Pods and their containers.
type recorder struct{ *events.Recorder }

// Record writes an event about a Pod, or about the container at fieldPath.
func (r *recorder) Record(pod *corev1.Pod, fieldPath string, e events.Event) {
	r.Recorder.Record(&corev1.ObjectReference{
		APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID,
		ResourceVersion: pod.ResourceVersion, FieldPath: fieldPath,
	}, e)
}

// RecordClaim writes an event about a claim.
func (r *recorder) RecordClaim(claim *corev1.PersistentVolumeClaim, e events.Event) {
	r.Recorder.Record(&corev1.ObjectReference{
		APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID,
		ResourceVersion: claim.ResourceVersion,
	}, e)
}

// recordNode writes an event about the node, under the name by which existing tools look for such events.
func (a *agent) recordNode(e events.Event) {
	a.events.Recorder.Record(&corev1.ObjectReference{Kind: "Node", Name: a.NodeName, UID: types.UID(a.NodeName)}, e)
}

// recordStart records that the agent has started, and that its Pods are limited to what the node has for them.
func (a *agent) recordStart() {
	a.recordNode(events.Normal("Starting", "Starting kubelet."))
	if a.Reserved.HoldsPods() {
		a.recordNode(events.Normal("NodeAllocatableEnforced", "Updated Node Allocatable limit across pods"))
	}
}

// probed writes the event about a probe that failed or returned a warning.
func (r *recorder) probed(target probe.Target, reason, message string) {
	for _, e := range lifecycle.Entries(target.Pod) {
		if e.Spec.Name == target.Container.Name {
			r.Record(target.Pod, e.Path, events.Warning(reason, "%s", message))
			return
		}
	}
}
