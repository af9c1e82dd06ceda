// Package events writes Events about objects: what a daemon did and why, in the field's own reasons. Repeated ones are
// counted up on one object, and a flood about one object is dropped at the source (client-go's correlator).
package events

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
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

// Recorder writes Events in the background. Losing one is no error: Events are hints, never state.
type Recorder struct {
	broadcaster record.EventBroadcaster
	recorder    record.EventRecorder
}

// NewRecorder returns a recorder whose Events name component as their source, and host if the component runs per node. The
// scheme must know the objects that are recorded. Stop it at the end.
func NewRecorder(config *rest.Config, scheme *runtime.Scheme, component, host string) (*Recorder, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("building the events client: %w", err)
	}
	broadcaster := record.NewBroadcaster()
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events("")})
	source := corev1.EventSource{Component: component, Host: host}
	return &Recorder{broadcaster: broadcaster, recorder: broadcaster.NewRecorder(scheme, source)}, nil
}

// Record writes the Event about the object; a *corev1.ObjectReference will do.
func (r *Recorder) Record(object runtime.Object, e Event) {
	r.recorder.Event(object, e.Type, e.Reason, e.Message)
}

// Stop drops what has not been written yet.
func (r *Recorder) Stop() {
	r.broadcaster.Shutdown()
}
