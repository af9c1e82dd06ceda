// Package event is the resource Event, served by the core group and by events.k8s.io from one store. An Event is kept
// for an hour.
package event

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericrest "k8s.io/apiserver/pkg/registry/rest"

	"keelson.dev/services/apiserver/internal/registry/rest"
)

// DefaultTTL is how long an Event is kept if nothing else is configured.
const DefaultTTL = time.Hour

// Resource is the Event of the core group.
var Resource = rest.Resource[*corev1.Event]{
	Name:       "events",
	Singular:   "event",
	ShortNames: []string{"ev"},
	New:        func() *corev1.Event { return &corev1.Event{} },
	NewList:    func() runtime.Object { return &corev1.EventList{} },
	Strategy:   rest.Strategy[*corev1.Event]{Validate: Validate, CreateOnUpdate: true},
	Columns:    columns,
	Fields:     fields,
}

var fields = []rest.Field[*corev1.Event]{
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

// Entries are the Events of the core group and those of events.k8s.io, over one store. An Event is kept for ttl; 0
// means DefaultTTL.
func Entries(ttl time.Duration) (core, events rest.Entry) {
	if ttl == 0 {
		ttl = DefaultTTL
	}
	s := &shared{Resource: Resource}
	s.TTL = func(*corev1.Event) time.Duration { return ttl }
	return s, newView{s}
}

// shared is the Event with its one store.
type shared struct {
	rest.Resource[*corev1.Event]
	opened *rest.Storage
}

// Storages opens the store, or takes the one already open, and returns it as events of the core group.
func (s *shared) Storages(o rest.Options) (map[string]genericrest.Storage, error) {
	if s.opened == nil {
		opened, err := s.Open(o)
		if err != nil {
			return nil, err
		}
		s.opened = opened
	}
	return s.Paths(s.opened), nil
}

// newView is the Event of events.k8s.io, which must be of the newer form.
type newView struct{ core *shared }

// AddToScheme registers nothing: the defaults are those of the core group, the field selectors come with the
// conversion.
func (v newView) AddToScheme(*runtime.Scheme) error { return nil }

// Storages returns the store of the core group as events of events.k8s.io.
func (v newView) Storages(o rest.Options) (map[string]genericrest.Storage, error) {
	if _, err := v.core.Storages(o); err != nil {
		return nil, err
	}
	view, store := *v.core.opened, *v.core.opened.Store
	strategy := rest.NewCreateUpdateStrategy(v.core.opened, rest.Strategy[*corev1.Event]{
		Validate:       ValidateNew,
		ValidateUpdate: ValidateNewUpdate,
		CreateOnUpdate: true,
	})
	store.CreateStrategy, store.UpdateStrategy = strategy, strategy
	store.DefaultQualifiedResource = eventsv1.Resource(Resource.Name)
	view.Store = &store
	return map[string]genericrest.Storage{Resource.Name: &view}, nil
}
