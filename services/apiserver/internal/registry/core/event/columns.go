package event

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/services/apiserver/internal/registry/rest"
)

var help = corev1.Event{}.SwaggerDoc()

// columns are what kubectl get events prints.
var columns = rest.Columns[*corev1.Event]{
	Definitions: []metav1.TableColumnDefinition{
		rest.Column("Last Seen", "string", help["lastTimestamp"]),
		rest.Column("Type", "string", help["type"]),
		rest.Column("Reason", "string", help["reason"]),
		rest.Column("Object", "string", help["involvedObject"]),
		rest.WideColumn("Subobject", "string", corev1.ObjectReference{}.SwaggerDoc()["fieldPath"]),
		rest.WideColumn("Source", "string", help["source"]),
		rest.Column("Message", "string", help["message"]),
		rest.WideColumn("First Seen", "string", help["firstTimestamp"]),
		rest.WideColumn("Count", "string", help["count"]),
		nameColumn(),
	},
	Row: row,
}

func nameColumn() metav1.TableColumnDefinition {
	column := rest.NameColumn()
	column.Priority = 1
	return column
}

func row(e *corev1.Event, now time.Time) []any {
	first, last, count := occurrences(e)
	return []any{
		rest.Age(last, now), e.Type, e.Reason, object(e.InvolvedObject), e.InvolvedObject.FieldPath, source(e),
		strings.TrimSpace(e.Message), rest.Age(first, now), int64(count), e.Name,
	}
}

// occurrences tells when the event was first and last seen and how often, in either form of an Event.
func occurrences(e *corev1.Event) (first, last metav1.Time, count int32) {
	first, last, count = e.FirstTimestamp, e.LastTimestamp, e.Count
	if first.IsZero() {
		first = metav1.Time{Time: e.EventTime.Time}
	}
	if last.IsZero() {
		last = first
	}
	if e.Series != nil {
		return first, metav1.Time{Time: e.Series.LastObservedTime.Time}, e.Series.Count
	}
	return first, last, max(count, 1)
}

func object(ref corev1.ObjectReference) string {
	kind := strings.ToLower(ref.Kind)
	if ref.Name == "" {
		return kind
	}
	return kind + "/" + ref.Name
}

// component is who reported the event, in either form.
func component(e *corev1.Event) string {
	if e.Source.Component != "" {
		return e.Source.Component
	}
	return e.ReportingController
}

func source(e *corev1.Event) string {
	host := e.Source.Host
	if e.Source.Component == "" {
		host = e.ReportingInstance
	}
	if host == "" {
		return component(e)
	}
	return component(e) + ", " + host
}
