package job

import (
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/fieldcheck/fieldtest"
	"keelson.dev/services/apiserver/internal/registry/table/tabletest"
)

type edit = func(*batchv1.Job)

// pi is the Job of JOB-006 after edits, as it comes to validation.
func pi(edits ...edit) *batchv1.Job {
	j := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "pi", Namespace: "default", UID: "uid-1"},
		Spec: batchv1.JobSpec{
			BackoffLimit: ptr.To[int32](4),
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever,
				Containers: []corev1.Container{{Name: "pi", Image: "perl:5.34.0",
					Command: []string{"perl", "-Mbignum=bpi", "-wle", "print bpi(2000)"}}},
			}},
		},
	}
	for _, e := range edits {
		e(j)
	}
	Default(j)
	Resource.ObjectWrites().PrepareForCreate(j)
	return j
}

// indexed makes an Indexed Job of n indexes, all at once.
func indexed(n int32) edit {
	return func(j *batchv1.Job) {
		j.Spec.CompletionMode = ptr.To(batchv1.IndexedCompletion)
		j.Spec.Completions, j.Spec.Parallelism = ptr.To(n), ptr.To(n)
	}
}

func TestColumns(t *testing.T) {
	tabletest.Golden(t, Resource) // JOB-018
}

// JOB-007, JOB-008, JOB-009, JOB-012, JOB-022, JOB-025, JOB-028, JOB-153: what a Job of the required fields reads back
// as.
func TestNewJob(t *testing.T) {
	j := pi()
	fieldtest.Check(t, Validate(j))
	spec, template := j.Spec, j.Spec.Template
	own := map[string]string{
		"batch.kubernetes.io/controller-uid": "uid-1", "batch.kubernetes.io/job-name": "pi",
		"controller-uid": "uid-1", "job-name": "pi",
	}
	for _, row := range []struct {
		name      string
		got, want any
	}{
		{"JOB-007 completionMode", *spec.CompletionMode, batchv1.CompletionMode("NonIndexed")},
		{"JOB-007 completions", *spec.Completions, int32(1)},
		{"JOB-007 parallelism", *spec.Parallelism, int32(1)},
		{"JOB-007 suspend", *spec.Suspend, false},
		{"JOB-007 backoffLimit", *spec.BackoffLimit, int32(4)},
		{"JOB-153 selector", spec.Selector, &metav1.LabelSelector{MatchLabels: map[string]string{
			"batch.kubernetes.io/controller-uid": "uid-1"}}},
		{"JOB-169 podReplacementPolicy", *spec.PodReplacementPolicy,
			batchv1.PodReplacementPolicy("TerminatingOrFailed")},
		{"JOB-021, JOB-022 template labels", template.Labels, own},
		{"JOB-009 labels", j.Labels, own},
		{"JOB-009 generation", j.Generation, int64(1)},
		{"JOB-012 no annotation of old times", len(j.Annotations), 0},
		{"JOB-008 imagePullPolicy", template.Spec.Containers[0].ImagePullPolicy, corev1.PullIfNotPresent},
		{"JOB-008 terminationMessagePath", template.Spec.Containers[0].TerminationMessagePath, "/dev/termination-log"},
		{"JOB-008 terminationMessagePolicy", template.Spec.Containers[0].TerminationMessagePolicy,
			corev1.TerminationMessageReadFile},
		{"JOB-008 dnsPolicy", template.Spec.DNSPolicy, corev1.DNSClusterFirst},
		{"JOB-008 schedulerName", template.Spec.SchedulerName, "default-scheduler"},
		{"JOB-008 securityContext", template.Spec.SecurityContext, &corev1.PodSecurityContext{}},
		{"JOB-008 grace period", *template.Spec.TerminationGracePeriodSeconds, int64(30)},
	} {
		if !equality.Semantic.DeepEqual(row.got, row.want) {
			t.Errorf("%s: got %v, want %v", row.name, row.got, row.want)
		}
	}
}

func TestDefault(t *testing.T) {
	type spec = batchv1.JobSpec
	int32s := ptr.To[int32]
	for _, row := range []struct {
		name  string
		given spec
		got   func(*batchv1.Job) any
		want  any
	}{
		{name: "JOB-030 completions alone", given: spec{Completions: int32s(5)},
			got: func(j *batchv1.Job) any { return *j.Spec.Parallelism }, want: int32(1)},
		{name: "JOB-032, JOB-033 a work queue has no completions", given: spec{Parallelism: int32s(3)},
			got: func(j *batchv1.Job) any { return j.Spec.Completions }, want: (*int32)(nil)},
		{name: "JOB-037 nothing at a time", given: spec{Parallelism: int32s(0)},
			got: func(j *batchv1.Job) any { return *j.Spec.Parallelism }, want: int32(0)},
		{name: "JOB-062 backoffLimit", got: func(j *batchv1.Job) any { return *j.Spec.BackoffLimit }, want: int32(6)},
		{name: "JOB-063 a limit for each index", given: spec{BackoffLimitPerIndex: int32s(1)},
			got: func(j *batchv1.Job) any { return *j.Spec.BackoffLimit }, want: int32(2147483647)},
		{name: "JOB-063 both limits", given: spec{BackoffLimitPerIndex: int32s(1), BackoffLimit: int32s(3)},
			got: func(j *batchv1.Job) any { return *j.Spec.BackoffLimit }, want: int32(3)},
		{name: "JOB-169 with a failure policy", given: spec{PodFailurePolicy: &batchv1.PodFailurePolicy{}},
			got:  func(j *batchv1.Job) any { return *j.Spec.PodReplacementPolicy },
			want: batchv1.PodReplacementPolicy("Failed")},
		{name: "JOB-089 a condition's status", given: spec{PodFailurePolicy: &batchv1.PodFailurePolicy{
			Rules: []batchv1.PodFailurePolicyRule{{OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{
				{Type: "DisruptionTarget"}}}}}},
			got: func(j *batchv1.Job) any {
				return j.Spec.PodFailurePolicy.Rules[0].OnPodConditions[0].Status
			}, want: corev1.ConditionTrue},
		{name: "JOB-138 suspended from the start", given: spec{Suspend: ptr.To(true)},
			got: func(j *batchv1.Job) any { return *j.Spec.Suspend }, want: true},
	} {
		t.Run(row.name, func(t *testing.T) {
			j := &batchv1.Job{Spec: row.given}
			Default(j)
			if got := row.got(j); !equality.Semantic.DeepEqual(got, row.want) {
				t.Errorf("got %v, want %v", got, row.want)
			}
		})
	}
}

// JOB-009: a Job with labels of its own keeps to them; one with its template's has the generated ones too.
func TestLabels(t *testing.T) {
	own := pi(func(j *batchv1.Job) { j.Labels = map[string]string{"team": "a"} })
	if len(own.Labels) != 1 || own.Spec.Template.Labels["job-name"] != "pi" {
		t.Errorf("labels %v, template labels %v", own.Labels, own.Spec.Template.Labels)
	}
	inherited := pi(func(j *batchv1.Job) { j.Spec.Template.Labels = map[string]string{"app": "pi"} })
	if inherited.Labels["app"] != "pi" || inherited.Labels["batch.kubernetes.io/job-name"] != "pi" {
		t.Errorf("labels %v", inherited.Labels)
	}
}

func TestSelector(t *testing.T) {
	manual := func(selector, template map[string]string) edit {
		return func(j *batchv1.Job) {
			j.Spec.ManualSelector = ptr.To(true)
			j.Spec.Selector, j.Spec.Template.Labels = &metav1.LabelSelector{MatchLabels: selector}, template
		}
	}
	old := map[string]string{"controller-uid": "a8f3d00d-c6d2-11e5-9f87-42010af00002"}
	for _, row := range []struct {
		name string
		edit edit
		want []string
	}{
		{"JOB-154, JOB-157 a manual selector", manual(old, old), nil},
		{"JOB-155 a manual selector of other Pods", manual(old, map[string]string{"app": "a"}),
			[]string{"spec.template.metadata.labels: Invalid value: {\"app\":\"a\"}: `selector` does not match"}},
		{"JOB-154 none where it has to be given", func(j *batchv1.Job) { j.Spec.ManualSelector = ptr.To(true) },
			[]string{"spec.selector: Required value"}},
		{"JOB-155 a selector without manualSelector", func(j *batchv1.Job) {
			j.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}}
			j.Spec.Template.Labels = map[string]string{"app": "a"}
		}, []string{"spec.selector: Invalid value: {\"matchLabels\":{\"app\":\"a\"," +
			"\"batch.kubernetes.io/controller-uid\":\"uid-1\"}}: `selector` not auto-generated"}},
		{"JOB-155 the generated one, given", func(j *batchv1.Job) {
			j.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{
				"batch.kubernetes.io/controller-uid": "uid-1"}}
		}, nil},
		{"JOB-155 another Job's UID", func(j *batchv1.Job) {
			j.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{
				"batch.kubernetes.io/controller-uid": "uid-2"}}
		}, []string{"spec.selector: Invalid value", "spec.template.metadata.labels: Invalid value"}},
		{"JOB-155 another Job's name in the template", func(j *batchv1.Job) {
			j.Spec.Template.Labels = map[string]string{"batch.kubernetes.io/job-name": "e"}
		}, []string{"spec.template.metadata.labels[batch.kubernetes.io/job-name]: Invalid value: \"e\": must be 'pi'"}},
	} {
		t.Run(row.name, func(t *testing.T) { fieldtest.Check(t, Validate(pi(row.edit)), row.want...) })
	}
	j := pi(manual(old, old))
	if len(j.Spec.Template.Labels) != 1 || len(j.Spec.Selector.MatchLabels) != 1 {
		t.Errorf("JOB-155: labels were generated beside a manual selector: %v", j.Spec.Template.Labels)
	}
}

// JOB-019, JOB-020.
func TestName(t *testing.T) {
	for name, valid := range map[string]bool{
		strings.Repeat("a", 63): true, strings.Repeat("a", 64): false, "a.b": true, "a_b": false,
	} {
		if got := len(Resource.Strategy.Name(name, false)) == 0; got != valid {
			t.Errorf("%s: valid %v, want %v", name, got, valid)
		}
	}
	if messages := Resource.Strategy.Name(strings.Repeat("a", 64)+"-", true); len(messages) > 0 {
		t.Errorf("a prefix of 65 characters, which is cut before use: %v", messages)
	}
	// JOB-050: the name and the last index make a hostname.
	named := func(length int, completions int32) *batchv1.Job {
		return pi(indexed(completions), func(j *batchv1.Job) { j.Name = strings.Repeat("a", length) })
	}
	fieldtest.Check(t, Validate(named(61, 10)))
	fieldtest.Check(t, Validate(named(61, 11)), "metadata.name: Invalid value: ")
	fieldtest.Check(t, Validate(named(62, 1)), "metadata.name: Invalid value: ")
	fieldtest.Check(t, Validate(named(63, 0)))
	fieldtest.Check(t, Validate(pi(indexed(1), func(j *batchv1.Job) { j.Name = "a.b" })),
		`metadata.name: Invalid value: "a.b": will not able to create pod with invalid DNS label: a.b-0`)
}

func TestWarnings(t *testing.T) {
	for _, row := range []struct {
		name string
		edit edit
		want string
	}{
		{"JOB-019 no DNS label", func(j *batchv1.Job) { j.Name = "a.b" }, "metadata.name: this is used in Pod names"},
		{"large", func(j *batchv1.Job) {
			indexed(100_001)(j)
			j.Spec.Parallelism = ptr.To[int32](10_001)
		}, "spec: in Indexed Jobs with a number of completions higher than 100000 and a parallelism higher than 10000"},
		{"many, few at a time", func(j *batchv1.Job) {
			indexed(100_001)(j)
			j.Spec.Parallelism = ptr.To[int32](10_000)
		}, ""},
		{"fewer", indexed(100_000), ""},
		{"plain", func(*batchv1.Job) {}, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			got := warnings(pi(row.edit))
			if (row.want == "") != (len(got) == 0) || row.want != "" && !strings.HasPrefix(got[0], row.want) {
				t.Errorf("%q, want %q", got, row.want)
			}
		})
	}
	large := pi(indexed(100_001))
	if got := warningsOnUpdate(large, large); len(got) != 0 {
		t.Errorf("an update of the metadata alone warns: %q", got)
	}
	changed := large.DeepCopy()
	changed.Generation++
	if got := warningsOnUpdate(changed, large); len(got) != 1 {
		t.Errorf("an update of the spec: %q", got)
	}
}

// What is alpha is not kept.
func TestDropUnserved(t *testing.T) {
	if j := pi(
		func(j *batchv1.Job) { j.Spec.Scheduling = &batchv1.JobSchedulingConfiguration{} }); j.Spec.Scheduling != nil {
		t.Error("spec.scheduling is kept")
	}
}

// The field selector status.successful.
func TestFields(t *testing.T) {
	j := pi()
	j.Status.Succeeded = 7
	if f := Resource.Fields; len(f) != 1 || f[0].Label != "status.successful" || f[0].Value(j) != "7" {
		t.Errorf("%+v", f)
	}
}
