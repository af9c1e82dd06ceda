// Package events writes Events about objects: what a daemon did and why, in the field's own reasons. Repeated ones are
// counted up on one object, and a flood about one object is dropped at the source.
package events

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// Event is what happened to an object, as data, so that decisions can make it.
type Event struct {
	// Type is corev1.EventTypeNormal or corev1.EventTypeWarning.
	Type string
	// Reason is CamelCase and short.
	Reason string
	// Message is one sentence for a person.
	Message string
}

// Normal returns an Event of the normal course of things.
func Normal(reason, format string, args ...any) Event {
	return Event{Type: corev1.EventTypeNormal, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// Warning returns an Event that a person should look at.
func Warning(reason, format string, args ...any) Event {
	return Event{Type: corev1.EventTypeWarning, Reason: reason, Message: fmt.Sprintf(format, args...)}
}
