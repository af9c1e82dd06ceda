package rows

import (
	"cmp"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Event is a row of the table of Events.
type Event struct {
	Namespace string `json:"namespace,omitempty"`
	// At is when it last happened, Count how often.
	At     time.Time `json:"at,omitzero"`
	Count  int32     `json:"count"`
	Tone   Tone      `json:"tone"`
	Type   string    `json:"type"`
	Reason string    `json:"reason"`
	// Kind and Name are the object's that it is about.
	Kind    string `json:"kind"`
	Name    string `json:"name"`
	Message string `json:"message"`
	// By is who reported it.
	By string `json:"by,omitempty"`
}

// OfEvent returns the row of an Event, which last happened at a time.
func OfEvent(e *corev1.Event, at time.Time) Event {
	row := Event{Namespace: e.Namespace, At: at.UTC(), Count: max(1, e.Count), Tone: Idle, Type: e.Type,
		Reason: e.Reason, Kind: e.InvolvedObject.Kind, Name: e.InvolvedObject.Name, Message: shortened(e.Message),
		By: cmp.Or(e.ReportingController, e.Source.Component)}
	if e.Series != nil {
		row.Count = max(row.Count, e.Series.Count)
	}
	if e.Type == corev1.EventTypeWarning {
		row.Tone = Bad
	}
	return row
}
