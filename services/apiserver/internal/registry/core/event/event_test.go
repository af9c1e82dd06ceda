package event

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/kit/fieldcheck/fieldtest"
)

func newer(edits ...func(*corev1.Event)) *corev1.Event {
	e := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Name: "a", Namespace: "default"},
		InvolvedObject: corev1.ObjectReference{Namespace: "default"},
		EventTime:      metav1.NewMicroTime(time.Unix(100, 0)), ReportingController: "keelson.dev/scheduler",
		ReportingInstance: "s1",
		Action:            "Binding", Reason: "Scheduled", Type: corev1.EventTypeNormal, Message: "assigned",
	}
	for _, edit := range edits {
		edit(e)
	}
	return e
}

func TestValidate(t *testing.T) {
	in := func(namespace, about string) *corev1.Event {
		return &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: namespace},
			InvolvedObject: corev1.ObjectReference{Namespace: about}}
	}
	const mismatch = "involvedObject.namespace: Invalid value: "
	for _, row := range []struct {
		name  string
		event *corev1.Event
		want  []string
	}{
		{"POD-223: the older form asks for little", in("a", "a"), nil},
		{"about something elsewhere", in("a", "b"), []string{mismatch}},
		{"about a cluster-wide object", in("default", ""), nil},
		{"about a cluster-wide object, in another namespace", in("a", ""), []string{mismatch}},
		{"the newer form", newer(), nil},
		{"the newer form by halves", newer(func(e *corev1.Event) {
			e.ReportingController, e.ReportingInstance, e.Action, e.Reason = "a b", "", "", ""
		}),
			[]string{`reportingController: Invalid value: "a b"`, "reportingInstance: Required value",
				"action: Required value", "reason: Required value"}},
		{"too long", newer(func(e *corev1.Event) {
			e.Action, e.Reason, e.Message = strings.Repeat("a", 129), strings.Repeat("b", 129),
				strings.Repeat("c", 1025)
		}), []string{"action: Too long", "reason: Too long", "message: Too long"}},
	} {
		t.Run(row.name, func(t *testing.T) { fieldtest.Check(t, Validate(row.event), row.want...) })
	}
}

func TestValidateNew(t *testing.T) {
	for _, row := range []struct {
		name string
		edit func(*corev1.Event)
		want []string
	}{
		{"as it is", func(*corev1.Event) {}, nil},
		{"no time", func(e *corev1.Event) { e.EventTime = metav1.MicroTime{} }, []string{"eventTime: Required value"}},
		{"an unknown type", func(e *corev1.Event) { e.Type = "Bad" }, []string{`type: Unsupported value: "Bad"`}},
		{"fields of the older form", func(e *corev1.Event) {
			e.FirstTimestamp, e.LastTimestamp, e.Count, e.Source.Component = metav1.Unix(1, 0), metav1.Unix(1, 0), 1,
				"x"
		}, []string{"deprecatedFirstTimestamp: Forbidden: needs to be unset", "deprecatedLastTimestamp: Forbidden",
			"deprecatedCount: Forbidden", "deprecatedSource: Forbidden"}},
		{"a series of one", func(e *corev1.Event) { e.Series = &corev1.EventSeries{Count: 1} },
			[]string{"series.count: Invalid value: 1: should be at least 2",
				"series.lastObservedTime: Required value"}},
		{"a note too long", func(e *corev1.Event) { e.Message = strings.Repeat("c", 1025) },
			[]string{"note: Too long"}},
	} {
		t.Run(row.name, func(t *testing.T) { fieldtest.Check(t, ValidateNew(newer(row.edit)), row.want...) })
	}
}

func TestValidateNewUpdate(t *testing.T) {
	again := newer(func(e *corev1.Event) {
		e.Series = &corev1.EventSeries{Count: 2, LastObservedTime: metav1.NewMicroTime(time.Unix(200, 0))}
	})
	fieldtest.Check(t, ValidateNewUpdate(again, newer()))
	fieldtest.Check(t, ValidateNewUpdate(newer(func(e *corev1.Event) {
		e.Reason, e.InvolvedObject.Name = "Other",
			"b"
	}), newer()),
		"reason: Invalid value", "regarding: Invalid value")
}

// DEP-044, DEP-056: the selectors by which clients find the Events of an object.
func TestFields(t *testing.T) {
	e := newer(func(e *corev1.Event) {
		e.InvolvedObject = corev1.ObjectReference{Kind: "Pod", Namespace: "default", Name: "web", UID: "u",
			APIVersion: "v1", ResourceVersion: "7", FieldPath: "spec"}
	})
	want := map[string]string{
		"involvedObject.kind": "Pod", "involvedObject.namespace": "default", "involvedObject.name": "web",
		"involvedObject.uid":        "u",
		"involvedObject.apiVersion": "v1", "involvedObject.resourceVersion": "7", "involvedObject.fieldPath": "spec",
		"reason": "Scheduled", "type": "Normal", "reportingComponent": "keelson.dev/scheduler",
		"source": "keelson.dev/scheduler",
	}
	for _, f := range fields {
		if got := f.Value(e); got != want[f.Label] {
			t.Errorf("%s is %q, want %q", f.Label, got, want[f.Label])
		}
		delete(want, f.Label)
	}
	if len(want) > 0 {
		t.Errorf("missing selectors: %v", want)
	}
}
