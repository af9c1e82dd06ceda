// Package event is the resource Event, served by the core group and by events.k8s.io from one store. An Event is kept
// for an hour.
//
//keelson:decision
package event

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"keelson.dev/services/apiserver/internal/resource"
)

// DefaultTTL is how long an Event is kept if nothing else is configured.
const DefaultTTL = time.Hour

// Resource is the Event of the core group.
var Resource = resource.Resource[*corev1.Event]{
	Name:       "events",
	Singular:   "event",
	ShortNames: []string{"ev"},
	New:        func() *corev1.Event { return &corev1.Event{} },
	NewList:    func() runtime.Object { return &corev1.EventList{} },
	Strategy:   resource.Strategy[*corev1.Event]{Validate: Validate, CreateOnUpdate: true},
	Columns:    columns,
	Fields:     fields,
}

var fields = []resource.Field[*corev1.Event]{
	{Label: "involvedObject.kind", Value: func(e *corev1.Event) string { return e.InvolvedObject.Kind }},
	{Label: "involvedObject.namespace", Value: func(e *corev1.Event) string { return e.InvolvedObject.Namespace }},
	{Label: "involvedObject.name", Value: func(e *corev1.Event) string { return e.InvolvedObject.Name }},
	{Label: "involvedObject.uid", Value: func(e *corev1.Event) string { return string(e.InvolvedObject.UID) }},
	{Label: "involvedObject.apiVersion", Value: func(e *corev1.Event) string { return e.InvolvedObject.APIVersion }},
	{Label: "involvedObject.resourceVersion",
		Value: func(e *corev1.Event) string { return e.InvolvedObject.ResourceVersion }},
	{Label: "involvedObject.fieldPath", Value: func(e *corev1.Event) string { return e.InvolvedObject.FieldPath }},
	{Label: "reason", Value: func(e *corev1.Event) string { return e.Reason }},
	{Label: "reportingComponent", Value: func(e *corev1.Event) string { return e.ReportingController }},
	{Label: "source", Value: component},
	{Label: "type", Value: func(e *corev1.Event) string { return e.Type }},
}

// KeptFor is the Event of the core group that is kept for ttl; 0 means DefaultTTL.
func KeptFor(ttl time.Duration) resource.Resource[*corev1.Event] {
	if ttl == 0 {
		ttl = DefaultTTL
	}
	r := Resource
	r.TTL = func(*corev1.Event) time.Duration { return ttl }
	return r
}

// NewerStrategy rules the writes of Events of events.k8s.io, which must be of the newer form.
var NewerStrategy = resource.Strategy[*corev1.Event]{
	Validate:       ValidateNew,
	ValidateUpdate: ValidateNewUpdate,
	CreateOnUpdate: true,
}
