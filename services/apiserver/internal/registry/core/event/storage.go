// Package event is the resource Event, served by the core group and by events.k8s.io from one store. An Event is kept
// for an hour.
package event

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericrest "k8s.io/apiserver/pkg/registry/rest"

	"keelson.dev/services/apiserver/internal/registry/rest"
)

// DefaultTTL is how long an Event is kept if nothing else is configured.
const DefaultTTL = time.Hour

var resource = rest.Resource[*corev1.Event]{
	Name:       "events",
	Singular:   "event",
	ShortNames: []string{"ev"},
	New:        func() *corev1.Event { return &corev1.Event{} },
	NewList:    func() runtime.Object { return &corev1.EventList{} },
	Strategy: rest.Strategy[*corev1.Event]{
		Validate:       Validate,
		ValidateUpdate: func(e, _ *corev1.Event) field.ErrorList { return Validate(e) },
		CreateOnUpdate: true,
	},
	Columns: columns,
	Fields:  fields,
}

var fields = []rest.Field[*corev1.Event]{
	{Label: "involvedObject.kind", Value: func(e *corev1.Event) string { return e.InvolvedObject.Kind }},
	{Label: "involvedObject.namespace", Value: func(e *corev1.Event) string { return e.InvolvedObject.Namespace }},
	{Label: "involvedObject.name", Value: func(e *corev1.Event) string { return e.InvolvedObject.Name }},
	{Label: "involvedObject.uid", Value: func(e *corev1.Event) string { return string(e.InvolvedObject.UID) }},
	{Label: "involvedObject.apiVersion", Value: func(e *corev1.Event) string { return e.InvolvedObject.APIVersion }},
	{Label: "involvedObject.resourceVersion", Value: func(e *corev1.Event) string { return e.InvolvedObject.ResourceVersion }},
	{Label: "involvedObject.fieldPath", Value: func(e *corev1.Event) string { return e.InvolvedObject.FieldPath }},
	{Label: "reason", Value: func(e *corev1.Event) string { return e.Reason }},
	{Label: "reportingComponent", Value: func(e *corev1.Event) string { return e.ReportingController }},
	{Label: "source", Value: component},
	{Label: "type", Value: func(e *corev1.Event) string { return e.Type }},
}

// AddToScheme registers the field selectors of the core group; those of events.k8s.io come with the conversion.
func AddToScheme(scheme *runtime.Scheme) error { return resource.AddToScheme(scheme) }

// Storages are the Events of both groups, over one store.
type Storages struct {
	// TTL is how long an Event is kept; 0 means DefaultTTL.
	TTL time.Duration

	opened *rest.Storage
}

// NewCoreStorage opens the store, or returns the one already open, as events of the core group.
func (s *Storages) NewCoreStorage(o rest.Options) (map[string]genericrest.Storage, error) {
	if s.opened == nil {
		withTTL := resource
		ttl := s.TTL
		if ttl == 0 {
			ttl = DefaultTTL
		}
		withTTL.TTL = func(*corev1.Event) time.Duration { return ttl }
		opened, err := withTTL.NewStorage(o)
		if err != nil {
			return nil, err
		}
		s.opened = opened
	}
	return s.opened.Map(), nil
}

// NewEventsStorage returns the same store as events of events.k8s.io, where an Event must be of the newer form.
func (s *Storages) NewEventsStorage(o rest.Options) (map[string]genericrest.Storage, error) {
	if _, err := s.NewCoreStorage(o); err != nil {
		return nil, err
	}
	view := *s.opened
	store := *s.opened.Store
	strategy := rest.NewCreateUpdateStrategy(o, rest.Strategy[*corev1.Event]{
		Validate:       ValidateNew,
		ValidateUpdate: ValidateNewUpdate,
		CreateOnUpdate: true,
	})
	store.CreateStrategy, store.UpdateStrategy = strategy, strategy
	store.DefaultQualifiedResource = eventsv1.Resource(resource.Name)
	view.Store = &store
	return map[string]genericrest.Storage{resource.Name: &view}, nil
}
