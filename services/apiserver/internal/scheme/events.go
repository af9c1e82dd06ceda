package scheme

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// addEventConversions makes the Event of events.k8s.io a second shape of the core Event: one object in the store, the
// core type in memory.
func addEventConversions(scheme *runtime.Scheme) error {
	if err := convertible(scheme, fromCore, toCore); err != nil {
		return err
	}
	if err := convertible(scheme, listFromCore, listToCore); err != nil {
		return err
	}
	return scheme.AddFieldLabelConversionFunc(eventsv1.SchemeGroupVersion.WithKind("Event"), eventFieldLabel)
}

func listFromCore(in *corev1.EventList, out *eventsv1.EventList) {
	out.ListMeta = in.ListMeta
	out.Items = make([]eventsv1.Event, len(in.Items))
	for i := range in.Items {
		fromCore(&in.Items[i], &out.Items[i])
	}
}

func listToCore(in *eventsv1.EventList, out *corev1.EventList) {
	out.ListMeta = in.ListMeta
	out.Items = make([]corev1.Event, len(in.Items))
	for i := range in.Items {
		toCore(&in.Items[i], &out.Items[i])
	}
}

// fromCore and toCore name the same fields in both shapes.
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
