package scheme

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// addEvents registers events.k8s.io, whose Event is a second shape of the core
// Event: one object in the store, the core type in memory.
func addEvents(scheme *runtime.Scheme) error {
	if err := eventsv1.AddToScheme(scheme); err != nil {
		return err
	}
	internal := schema.GroupVersion{Group: eventsv1.GroupName, Version: runtime.APIVersionInternal}
	scheme.AddKnownTypes(internal, &corev1.Event{}, &corev1.EventList{})
	for _, add := range []func(*runtime.Scheme) error{addEventConversions, addEventListConversions} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	if err := scheme.AddFieldLabelConversionFunc(eventsv1.SchemeGroupVersion.WithKind("Event"), eventFieldLabel); err != nil {
		return err
	}
	return scheme.SetVersionPriority(eventsv1.SchemeGroupVersion)
}

func addEventConversions(scheme *runtime.Scheme) error {
	err := scheme.AddConversionFunc((*corev1.Event)(nil), (*eventsv1.Event)(nil), func(in, out any, _ conversion.Scope) error {
		fromCore(in.(*corev1.Event), out.(*eventsv1.Event))
		return nil
	})
	if err != nil {
		return err
	}
	return scheme.AddConversionFunc((*eventsv1.Event)(nil), (*corev1.Event)(nil), func(in, out any, _ conversion.Scope) error {
		toCore(in.(*eventsv1.Event), out.(*corev1.Event))
		return nil
	})
}

func addEventListConversions(scheme *runtime.Scheme) error {
	err := scheme.AddConversionFunc((*corev1.EventList)(nil), (*eventsv1.EventList)(nil), func(in, out any, _ conversion.Scope) error {
		from, to := in.(*corev1.EventList), out.(*eventsv1.EventList)
		to.ListMeta = from.ListMeta
		to.Items = make([]eventsv1.Event, len(from.Items))
		for i := range from.Items {
			fromCore(&from.Items[i], &to.Items[i])
		}
		return nil
	})
	if err != nil {
		return err
	}
	return scheme.AddConversionFunc((*eventsv1.EventList)(nil), (*corev1.EventList)(nil), func(in, out any, _ conversion.Scope) error {
		from, to := in.(*eventsv1.EventList), out.(*corev1.EventList)
		to.ListMeta = from.ListMeta
		to.Items = make([]corev1.Event, len(from.Items))
		for i := range from.Items {
			toCore(&from.Items[i], &to.Items[i])
		}
		return nil
	})
}

// fromCore and toCore name the same fields in both shapes. Like generated
// conversions they share what the input points to.
func fromCore(in *corev1.Event, out *eventsv1.Event) {
	*out = eventsv1.Event{
		ObjectMeta:               in.ObjectMeta,
		EventTime:                in.EventTime,
		ReportingController:      in.ReportingController,
		ReportingInstance:        in.ReportingInstance,
		Action:                   in.Action,
		Reason:                   in.Reason,
		Regarding:                in.InvolvedObject,
		Related:                  in.Related,
		Note:                     in.Message,
		Type:                     in.Type,
		DeprecatedSource:         in.Source,
		DeprecatedFirstTimestamp: in.FirstTimestamp,
		DeprecatedLastTimestamp:  in.LastTimestamp,
		DeprecatedCount:          in.Count,
	}
	if in.Series != nil {
		out.Series = &eventsv1.EventSeries{Count: in.Series.Count, LastObservedTime: in.Series.LastObservedTime}
	}
}

func toCore(in *eventsv1.Event, out *corev1.Event) {
	*out = corev1.Event{
		ObjectMeta:          in.ObjectMeta,
		EventTime:           in.EventTime,
		ReportingController: in.ReportingController,
		ReportingInstance:   in.ReportingInstance,
		Action:              in.Action,
		Reason:              in.Reason,
		InvolvedObject:      in.Regarding,
		Related:             in.Related,
		Message:             in.Note,
		Type:                in.Type,
		Source:              in.DeprecatedSource,
		FirstTimestamp:      in.DeprecatedFirstTimestamp,
		LastTimestamp:       in.DeprecatedLastTimestamp,
		Count:               in.DeprecatedCount,
	}
	if in.Series != nil {
		out.Series = &corev1.EventSeries{Count: in.Series.Count, LastObservedTime: in.Series.LastObservedTime}
	}
}

// eventFields maps the field selectors of events.k8s.io to those of the core Event.
var eventFields = map[string]string{
	"metadata.name":             "metadata.name",
	"metadata.namespace":        "metadata.namespace",
	"reason":                    "reason",
	"type":                      "type",
	"reportingController":       "reportingComponent",
	"regarding.kind":            "involvedObject.kind",
	"regarding.namespace":       "involvedObject.namespace",
	"regarding.name":            "involvedObject.name",
	"regarding.uid":             "involvedObject.uid",
	"regarding.apiVersion":      "involvedObject.apiVersion",
	"regarding.resourceVersion": "involvedObject.resourceVersion",
	"regarding.fieldPath":       "involvedObject.fieldPath",
}

func eventFieldLabel(label, value string) (string, string, error) {
	if core, ok := eventFields[label]; ok {
		return core, value, nil
	}
	return "", "", fmt.Errorf("field label not supported: %s", label)
}
