package cronjob

import (
	"fmt"
	"strings"
	"time"
	// The time zones, where the system has none.
	_ "time/tzdata"

	"github.com/robfig/cron/v3"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"keelson.dev/kit/fieldcheck"
	"keelson.dev/services/apiserver/internal/registry/batch/job"
)

const (
	// maxName leaves room in the name of a Job, of at most 63 characters, for "-" and the minute of its schedule.
	maxName = 52

	zoneInSchedule = "TZ"
	unsupportedTZ  = "CRON_TZ or TZ used in spec.schedule is not officially supported, see " +
		"https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
)

var (
	specPath     = field.NewPath("spec")
	templatePath = specPath.Child("jobTemplate")
)

// validName is the check of metadata.name.
func validName(name string, prefix bool) []string {
	messages := apivalidation.NameIsDNSSubdomain(name, prefix)
	if len(name) > maxName {
		messages = append(messages, validation.MaxLenError(maxName))
	}
	return messages
}

// Validate returns what is wrong with the spec of a new, defaulted CronJob.
func Validate(c *batchv1.CronJob) field.ErrorList { return validate(c, &batchv1.CronJobSpec{}) }

// ValidateUpdate returns what is wrong with c as the successor of old. A zone that stands in the schedule since it was
// allowed may stay there, and one that was known once may be unknown now.
func ValidateUpdate(c, old *batchv1.CronJob) field.ErrorList { return validate(c, &old.Spec) }

func validate(c *batchv1.CronJob, old *batchv1.CronJobSpec) field.ErrorList {
	spec := &c.Spec
	errs := validateSchedule(spec, old, specPath.Child("schedule"))
	if !equality.Semantic.DeepEqual(spec.TimeZone, old.TimeZone) {
		errs = append(errs, validateTimeZone(spec.TimeZone, specPath.Child("timeZone"))...)
	}
	errs = append(errs, fieldcheck.NonNegativePtr(spec.StartingDeadlineSeconds,
		specPath.Child("startingDeadlineSeconds"))...)
	errs = append(errs, fieldcheck.RequiredOneOf(spec.ConcurrencyPolicy, specPath.Child("concurrencyPolicy"),
		batchv1.AllowConcurrent, batchv1.ForbidConcurrent, batchv1.ReplaceConcurrent)...)
	errs = append(errs, job.ValidateTemplate(&spec.JobTemplate, templatePath)...)
	errs = append(errs, fieldcheck.NonNegativePtr(spec.SuccessfulJobsHistoryLimit,
		specPath.Child("successfulJobsHistoryLimit"))...)
	return append(errs, fieldcheck.NonNegativePtr(spec.FailedJobsHistoryLimit,
		specPath.Child("failedJobsHistoryLimit"))...)
}

// validateSchedule asks the library that will read the schedule.
func validateSchedule(spec, old *batchv1.CronJobSpec, path *field.Path) field.ErrorList {
	if spec.Schedule == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	var errs field.ErrorList
	if err := parse(spec.Schedule); err != nil {
		errs = append(errs, field.Invalid(path, spec.Schedule, err.Error()))
	}
	if !strings.Contains(spec.Schedule, zoneInSchedule) {
		return errs
	}
	if spec.TimeZone != nil {
		return append(errs, field.Invalid(path, spec.Schedule,
			"cannot use both timeZone field and TZ or CRON_TZ in schedule"))
	}
	if !strings.Contains(old.Schedule, zoneInSchedule) {
		errs = append(errs, field.Invalid(path, spec.Schedule,
			"cannot use TZ or CRON_TZ in schedule, use timeZone field instead"))
	}
	return errs
}

// parse says why the library does not understand a schedule. One that is nothing but a zone it does not survive.
func parse(schedule string) error {
	if hasZone := strings.HasPrefix(schedule, "TZ=") || strings.HasPrefix(schedule, "CRON_TZ="); hasZone &&
		!strings.Contains(schedule, " ") {
		return fmt.Errorf("expected a schedule after the time zone: %s", schedule)
	}
	_, err := cron.ParseStandard(schedule)
	return err
}

func validateTimeZone(zone *string, path *field.Path) field.ErrorList {
	if zone == nil {
		return nil
	}
	if *zone == "" {
		return field.ErrorList{field.Invalid(path, *zone, "timeZone must be nil or non-empty string")}
	}
	if strings.EqualFold(*zone, time.Local.String()) {
		return field.ErrorList{field.Invalid(path, *zone,
			"timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones")}
	}
	if _, err := time.LoadLocation(*zone); err != nil {
		return field.ErrorList{field.Invalid(path, *zone, err.Error())}
	}
	return nil
}

func warnings(c *batchv1.CronJob) []string {
	var all []string
	if messages := validation.IsDNS1123Label(c.Name); len(messages) > 0 {
		all = append(all, job.NameWarning(messages))
	}
	return append(all, specWarnings(c)...)
}

func warningsOnUpdate(c, _ *batchv1.CronJob) []string { return specWarnings(c) }

func specWarnings(c *batchv1.CronJob) []string {
	all := job.SpecWarnings(&c.Spec.JobTemplate.Spec, templatePath.Child("spec"))
	if strings.Contains(c.Spec.Schedule, zoneInSchedule) {
		all = append(all, specPath.Child("schedule").String()+": "+unsupportedTZ)
	}
	return all
}
