// Package eventstest keeps the events that a test's subject records.
package eventstest

import (
	"k8s.io/apimachinery/pkg/runtime"

	"keelson.dev/kit/events"
)

// Recorded are events as text: type, reason and message, in the order in which they came.
type Recorded []string

// Record keeps one event.
func (r *Recorded) Record(_ runtime.Object, e events.Event) {
	*r = append(*r, e.Type+" "+e.Reason+" "+e.Message)
}
