package event

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"keelson.dev/kit/fieldcheck"
)

// Limits of the newer form of an Event, in bytes.
const (
	maxReportingInstance = 128
	maxAction            = 128
	maxReason            = 128
	maxNote              = 1024
)

// Validate returns what is wrong with an Event of the core group: it may be of the older form, without eventTime, of
// which little is asked, or of the newer one.
func Validate(e *corev1.Event) field.ErrorList {
	errs := validateNamespace(e)
	if e.EventTime.IsZero() {
		return errs
	}
	return append(errs, validateReport(e, "message")...)
}

// ValidateNew returns what is wrong with an Event of events.k8s.io: it must be of the newer form.
func ValidateNew(e *corev1.Event) field.ErrorList {
	errs := validateNamespace(e)
	if e.EventTime.IsZero() {
		errs = append(errs, field.Required(field.NewPath("eventTime"), ""))
	}
	errs = append(errs, fieldcheck.OneOf(e.Type, field.NewPath("type"),
		corev1.EventTypeNormal, corev1.EventTypeWarning)...)
	for _, deprecated := range []struct {
		name string
		set  bool
	}{
		{"deprecatedFirstTimestamp", !e.FirstTimestamp.IsZero()},
		{"deprecatedLastTimestamp", !e.LastTimestamp.IsZero()},
		{"deprecatedCount", e.Count != 0},
		{"deprecatedSource", e.Source != corev1.EventSource{}},
	} {
		if deprecated.set {
			errs = append(errs, field.Forbidden(field.NewPath(deprecated.name), "needs to be unset"))
		}
	}
	errs = append(errs, validateSeries(e)...)
	return append(errs, validateReport(e, "note")...)
}

// ValidateNewUpdate returns what is wrong with e as the successor of old. What happened stays; only the series goes on.
func ValidateNewUpdate(e, old *corev1.Event) field.ErrorList {
	errs := validateSeries(e)
	for _, part := range []struct {
		name     string
		now, was any
	}{
		{"regarding", e.InvolvedObject, old.InvolvedObject},
		{"reason", e.Reason, old.Reason},
		{"note", e.Message, old.Message},
		{"type", e.Type, old.Type},
		{"eventTime", e.EventTime, old.EventTime},
		{"action", e.Action, old.Action},
		{"related", e.Related, old.Related},
		{"reportingController", e.ReportingController, old.ReportingController},
		{"reportingInstance", e.ReportingInstance, old.ReportingInstance},
	} {
		if !equality.Semantic.DeepEqual(part.now, part.was) {
			errs = append(errs, fieldcheck.Immutable(part.now, part.was, field.NewPath(part.name))...)
		}
	}
	return errs
}

// validateNamespace wants an Event to stand in the namespace of what it is about; those about cluster-wide objects
// stand in default or kube-system.
func validateNamespace(e *corev1.Event) field.ErrorList {
	about := e.InvolvedObject.Namespace
	allowed := about == e.Namespace
	if about == "" {
		allowed = e.Namespace == metav1.NamespaceDefault || e.Namespace == metav1.NamespaceSystem || e.Namespace == ""
	}
	if allowed {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("involvedObject", "namespace"), about,
		"does not match event.namespace")}
}

// validateReport checks who reports what; the text's field is called message in one group and note in the other.
func validateReport(e *corev1.Event, textField string) field.ErrorList {
	errs := fieldcheck.Required(e.ReportingController, field.NewPath("reportingController"), validation.IsQualifiedName)
	errs = append(errs, requiredUpTo(e.ReportingInstance, maxReportingInstance, field.NewPath("reportingInstance"))...)
	errs = append(errs, requiredUpTo(e.Action, maxAction, field.NewPath("action"))...)
	errs = append(errs, requiredUpTo(e.Reason, maxReason, field.NewPath("reason"))...)
	if len(e.Message) > maxNote {
		errs = append(errs, field.TooLong(field.NewPath(textField), "", maxNote))
	}
	return errs
}

func validateSeries(e *corev1.Event) field.ErrorList {
	if e.Series == nil {
		return nil
	}
	var errs field.ErrorList
	path := field.NewPath("series")
	if e.Series.Count < 2 {
		errs = append(errs, field.Invalid(path.Child("count"), e.Series.Count, "should be at least 2"))
	}
	if e.Series.LastObservedTime.IsZero() {
		errs = append(errs, field.Required(path.Child("lastObservedTime"), ""))
	}
	return errs
}

func requiredUpTo(value string, limit int, path *field.Path) field.ErrorList {
	if len(value) > limit {
		return field.ErrorList{field.TooLong(path, "", limit)}
	}
	return fieldcheck.Required(value, path, fieldcheck.NotEmpty)
}
