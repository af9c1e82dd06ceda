package cronjob

import (
	"bytes"
	"os"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/fieldcheck/fieldtest"
	"keelson.dev/services/apiserver/internal/registry/table/tabletest"
)

type edit = func(*batchv1.CronJob)

// hello is the CronJob of JOB-187 after edits, defaulted.
func hello(edits ...edit) *batchv1.CronJob {
	c := &batchv1.CronJob{
		ObjectMeta: metav1.ObjectMeta{Name: "hello", Namespace: "default"},
		Spec: batchv1.CronJobSpec{
			Schedule: "* * * * *",
			JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{
				Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyOnFailure, Containers: []corev1.Container{
					{Name: "hello", Image: "busybox:1.28", ImagePullPolicy: corev1.PullIfNotPresent}}},
			}}},
		},
	}
	for _, e := range edits {
		e(c)
	}
	Default(c)
	return c
}

func schedule(text string) edit { return func(c *batchv1.CronJob) { c.Spec.Schedule = text } }

func zone(name string) edit { return func(c *batchv1.CronJob) { c.Spec.TimeZone = &name } }

func TestColumns(t *testing.T) {
	tabletest.Golden(t, Resource) // JOB-189
}

func TestDefault(t *testing.T) {
	spec := hello().Spec
	for _, row := range []struct {
		name      string
		got, want any
	}{
		{"JOB-207 concurrencyPolicy", spec.ConcurrencyPolicy, batchv1.ConcurrencyPolicy("Allow")},
		{"JOB-212 suspend", *spec.Suspend, false},
		{"JOB-215 successfulJobsHistoryLimit", *spec.SuccessfulJobsHistoryLimit, int32(3)},
		{"JOB-216 failedJobsHistoryLimit", *spec.FailedJobsHistoryLimit, int32(1)},
		{"JOB-203 startingDeadlineSeconds", spec.StartingDeadlineSeconds, (*int64)(nil)},
		{"the Pods' defaults", spec.JobTemplate.Spec.Template.Spec.DNSPolicy, corev1.DNSClusterFirst},
		{"the Job's defaults are left to it", spec.JobTemplate.Spec.BackoffLimit, (*int32)(nil)},
	} {
		if row.got != row.want {
			t.Errorf("%s: got %v, want %v", row.name, row.got, row.want)
		}
	}
}

func TestValidate(t *testing.T) {
	for _, row := range []struct {
		name string
		edit edit
		want []string
	}{
		{"JOB-184 the example", func(*batchv1.CronJob) {}, nil},
		{"JOB-203 negative", func(c *batchv1.CronJob) {
			c.Spec.StartingDeadlineSeconds = ptr.To[int64](-1)
			c.Spec.SuccessfulJobsHistoryLimit, c.Spec.FailedJobsHistoryLimit = ptr.To[int32](-1), ptr.To[int32](-1)
		}, []string{"spec.startingDeadlineSeconds: Invalid value: -1",
			"spec.successfulJobsHistoryLimit: Invalid value: -1",
			"spec.failedJobsHistoryLimit: Invalid value: -1"}},
		{"JOB-203, JOB-215, JOB-216 zeros", func(c *batchv1.CronJob) {
			c.Spec.StartingDeadlineSeconds = ptr.To[int64](0)
			c.Spec.SuccessfulJobsHistoryLimit, c.Spec.FailedJobsHistoryLimit = ptr.To[int32](0), ptr.To[int32](0)
		}, nil},
		{"JOB-207 Forbid", func(c *batchv1.CronJob) { c.Spec.ConcurrencyPolicy = "Forbid" }, nil},
		{"JOB-207 Replace", func(c *batchv1.CronJob) { c.Spec.ConcurrencyPolicy = "Replace" }, nil},
		{"JOB-207 no such policy", func(c *batchv1.CronJob) { c.Spec.ConcurrencyPolicy = "Queue" },
			[]string{
				`spec.concurrencyPolicy: Unsupported value: "Queue": supported values: "Allow", "Forbid", "Replace"`}},
		{"JOB-201 no template", func(c *batchv1.CronJob) { c.Spec.JobTemplate = batchv1.JobTemplateSpec{} }, []string{
			"spec.jobTemplate.spec.template.spec.containers: Required value",
			"spec.jobTemplate.spec.template.spec.restartPolicy: Required value"}},
		{"JOB-201 a selector", func(c *batchv1.CronJob) { c.Spec.JobTemplate.Spec.Selector = &metav1.LabelSelector{} },
			[]string{"spec.jobTemplate.spec.selector: Invalid value: {}: `selector` will be auto-generated"}},
	} {
		t.Run(row.name, func(t *testing.T) { fieldtest.Check(t, Validate(hello(row.edit)), row.want...) })
	}
}

// JOB-191, JOB-192, JOB-195 to JOB-200.
func TestSchedule(t *testing.T) {
	for _, text := range []string{
		"0 3 * * 1", "59 23 31 12 6", "0 0 1 1 0", "0-59/2 */2 ? * ?",
		"0,30 0-23/2 1,15 jan-dec SUN,mon,Tue,wed,thu,fri,sat",
		"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly", "@every 5m",
	} {
		fieldtest.Check(t, Validate(hello(schedule(text))))
	}
	for text, want := range map[string]string{
		"":               "spec.schedule: Required value",
		"60 * * * *":     "spec.schedule: Invalid value: \"60 * * * *\": end of range (60) above maximum (59)",
		"* 24 * * *":     "spec.schedule: Invalid value",
		"* * 0 * *":      "spec.schedule: Invalid value",
		"* * 32 * *":     "spec.schedule: Invalid value",
		"* * * 0 *":      "spec.schedule: Invalid value",
		"* * * 13 *":     "spec.schedule: Invalid value",
		"* * * * 7":      "spec.schedule: Invalid value",
		"* * * * sunday": "spec.schedule: Invalid value",
		"* * * *":        "spec.schedule: Invalid value: \"* * * *\": expected exactly 5 fields, found 4",
		"0 * * * * *":    "spec.schedule: Invalid value",
		"@fortnightly":   "spec.schedule: Invalid value",
		"@every x":       "spec.schedule: Invalid value",
		"5-1 * * * *":    "spec.schedule: Invalid value",
		"*/0 * * * *":    "spec.schedule: Invalid value",
	} {
		t.Run(text, func(t *testing.T) { fieldtest.Check(t, Validate(hello(schedule(text))), want) })
	}
}

func TestTimeZone(t *testing.T) {
	for _, row := range []struct {
		name string
		zone string
		want []string
	}{
		{"JOB-218 UTC", "Etc/UTC", nil},
		{"JOB-218 a place", "Europe/Kyiv", nil},
		{"JOB-218 an offset", "Etc/GMT+5", nil},
		{"JOB-218 no such place", "Europe/Atlantis",
			[]string{`spec.timeZone: Invalid value: "Europe/Atlantis": unknown time zone Europe/Atlantis`}},
		{"JOB-220 empty", "", []string{`spec.timeZone: Invalid value: "": timeZone must be nil or non-empty string`}},
		{"JOB-220 Local", "Local",
			[]string{`spec.timeZone: Invalid value: "Local": timeZone must be an explicit time zone`}},
		{"JOB-220 local", "local",
			[]string{`spec.timeZone: Invalid value: "local": timeZone must be an explicit time zone`}},
		{"out of the folder", "../../etc/passwd", []string{`spec.timeZone: Invalid value: "../../etc/passwd"`}},
	} {
		t.Run(row.name, func(t *testing.T) { fieldtest.Check(t, Validate(hello(zone(row.zone))), row.want...) })
	}
}

// JOB-219: the program has the zones' data in it. The name and what follows it are put together only here, so that this
// test has no such text itself.
func TestZonesAreEmbedded(t *testing.T) {
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if entry := strings.Join([]string{"Europe/", "Kyiv", "TZif"}, ""); !bytes.Contains(program, []byte(entry)) {
		t.Error("the time zones are not part of the program")
	}
}

func TestZoneInSchedule(t *testing.T) {
	const inSchedule = "TZ=Europe/Kyiv 0 3 * * *"
	unused := `": cannot use TZ or CRON_TZ in schedule, use timeZone field instead`
	for _, row := range []struct {
		name     string
		old, now *batchv1.CronJob
		want     []string
	}{
		{"JOB-221 TZ", nil, hello(schedule(inSchedule)),
			[]string{`spec.schedule: Invalid value: "` + inSchedule + unused}},
		{"JOB-221 CRON_TZ", nil, hello(schedule("CRON_" + inSchedule)),
			[]string{`spec.schedule: Invalid value: "CRON_` + inSchedule + unused}},
		{"JOB-221 nothing but a zone", nil, hello(schedule("TZ=UTC")), []string{
			`spec.schedule: Invalid value: "TZ=UTC": expected a schedule after the time zone`,
			`spec.schedule: Invalid value: "TZ=UTC` + unused}},
		{"JOB-222 it stays", hello(schedule(inSchedule)), hello(schedule("TZ=Europe/Kyiv 0 4 * * *")), nil},
		{"JOB-223 it comes", hello(), hello(schedule(inSchedule)), []string{"spec.schedule: Invalid value"}},
		{"JOB-223 with a time zone", hello(schedule(inSchedule)), hello(schedule(inSchedule), zone("Etc/UTC")),
			[]string{`spec.schedule: Invalid value: "` + inSchedule +
				`": cannot use both timeZone field and TZ or CRON_TZ`}},
		{"JOB-218 a zone unknown by now stays", hello(zone("Europe/Gone")), hello(zone("Europe/Gone")), nil},
		{"JOB-218 a zone unknown by now comes", hello(), hello(zone("Europe/Gone")),
			[]string{"spec.timeZone: Invalid value"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			errs := Validate(row.now)
			if row.old != nil {
				errs = ValidateUpdate(row.now, row.old)
			}
			fieldtest.Check(t, errs, row.want...)
		})
	}
	// JOB-222.
	if got := warningsOnUpdate(hello(schedule(inSchedule)), hello()); len(got) != 1 ||
		!strings.HasPrefix(got[0], "spec.schedule: CRON_TZ or TZ used in spec.schedule is not officially supported") {
		t.Errorf("warnings %q", got)
	}
	if got := warningsOnUpdate(hello(), hello(schedule(inSchedule))); len(got) != 0 {
		t.Errorf("warnings %q", got)
	}
}

// JOB-185.
func TestName(t *testing.T) {
	for name, valid := range map[string]bool{
		strings.Repeat("a", 52): true, strings.Repeat("a", 53): false, "a.b": true, "a_b": false,
	} {
		if got := len(Resource.Strategy.Name(name, false)) == 0; got != valid {
			t.Errorf("%s: valid %v, want %v", name, got, valid)
		}
	}
	if got := warnings(hello(func(c *batchv1.CronJob) { c.Name = "a.b" })); len(got) != 1 ||
		!strings.HasPrefix(got[0], "metadata.name: ") {
		t.Errorf("warnings %q", got)
	}
	if got := warnings(hello()); len(got) != 0 {
		t.Errorf("warnings %q", got)
	}
}
