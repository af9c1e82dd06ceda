package event

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/services/apiserver/internal/resource"
)

var help = corev1.Event{}.SwaggerDoc()

// line is an Event with what several of its cells show.
type line struct {
	*corev1.Event
	first, last metav1.Time
	count       int32
}

// columns are what kubectl get events prints.
var columns = resource.NewColumnsOf(newLine,
	resource.AgoColumn("Last Seen", help["lastTimestamp"], func(l line) metav1.Time { return l.last }),
	resource.Column("Type", "string", help["type"], func(l line) any { return l.Type }),
	resource.Column("Reason", "string", help["reason"], func(l line) any { return l.Reason }),
	resource.Column("Object", "string", help["involvedObject"], func(l line) any { return object(l.InvolvedObject) }),
	resource.Column("Subobject", "string", corev1.ObjectReference{}.SwaggerDoc()["fieldPath"],
		func(l line) any { return l.InvolvedObject.FieldPath }).Wide(),
	resource.Column("Source", "string", help["source"], func(l line) any { return source(l.Event) }).Wide(),
	resource.Column("Message", "string", help["message"], func(l line) any { return strings.TrimSpace(l.Message) }),
	resource.AgoColumn("First Seen", help["firstTimestamp"], func(l line) metav1.Time { return l.first }).Wide(),
	resource.Column("Count", "string", help["count"], func(l line) any { return int64(l.count) }).Wide(),
	resource.NameColumn[line]().Wide(),
)

func newLine(e *corev1.Event) line {
	first, last, count := occurrences(e)
	return line{e, first, last, count}
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
