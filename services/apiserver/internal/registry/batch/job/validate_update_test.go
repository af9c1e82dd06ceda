package job

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/fieldcheck/fieldtest"
)

func TestValidateUpdate(t *testing.T) {
	const fixed = ": field is immutable"
	n := ptr.To[int32]
	resize := func(completions, parallelism int32) edit {
		return func(j *batchv1.Job) { j.Spec.Completions, j.Spec.Parallelism = n(completions), n(parallelism) }
	}
	for _, row := range []struct {
		name      string
		old, edit edit
		want      []string
	}{
		{"JOB-037, JOB-138, JOB-178 what may change", all(), func(j *batchv1.Job) {
			j.Spec.Parallelism, j.Spec.Suspend, j.Spec.BackoffLimit = n(0), ptr.To(true), n(9)
			j.Spec.TTLSecondsAfterFinished, j.Spec.ActiveDeadlineSeconds = n(0), ptr.To[int64](9)
			j.Spec.PodReplacementPolicy = ptr.To(batchv1.Failed)
		}, nil},
		{"JOB-026 rules hold on update too", all(), func(j *batchv1.Job) { j.Spec.Parallelism = n(-1) },
			[]string{"spec.parallelism: Invalid value: -1"}},
		{"JOB-026 the selector", all(), func(j *batchv1.Job) {
			j.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"job-name": "pi"}}
		},
			[]string{"spec.selector: Invalid value"}},
		{"JOB-026 the mode", all(), func(j *batchv1.Job) { j.Spec.CompletionMode = ptr.To(batchv1.IndexedCompletion) },
			[]string{`spec.completionMode: Invalid value: "Indexed"` + fixed}},
		{"JOB-026 the failure policy", failurePolicy(onExitCodes("Count", "In", 1)),
			failurePolicy(onExitCodes("Count", "In", 2)), []string{"spec.podFailurePolicy: Invalid value"}},
		{"JOB-026 the limit per index", all(indexed(2), perIndex(1, 1)), perIndex(2, 1),
			[]string{"spec.backoffLimitPerIndex: Invalid value: 2" + fixed}},
		{"JOB-073 the limit of indexes may change", all(indexed(2), perIndex(1, 1)), perIndex(1, 2), nil},
		{"JOB-026 the success policy", indexed(2), func(j *batchv1.Job) {
			j.Spec.SuccessPolicy = &batchv1.SuccessPolicy{Rules: []batchv1.SuccessPolicyRule{{SucceededCount: n(1)}}}
		}, []string{"spec.successPolicy: Invalid value"}},
		{"JOB-171 who manages it", all(), func(j *batchv1.Job) { j.Spec.ManagedBy = ptr.To("acme.io/foo") },
			[]string{`spec.managedBy: Invalid value: "acme.io/foo"` + fixed}},
		{"JOB-026 completions", all(), resize(2, 2), []string{"spec.completions: Invalid value: 2" + fixed}},
		{"JOB-162 an elastic Job grows", indexed(3), resize(6, 6), nil},
		{"JOB-162 an elastic Job shrinks", indexed(5), resize(3, 3), nil},
		{"JOB-162 not at once", indexed(5), resize(6, 5),
			[]string{"spec.completions: Invalid value: 6: can only be modified in tandem with spec.parallelism"}},
		{"JOB-162 not elastic before", all(indexed(5), resize(5, 3)), resize(6, 6),
			[]string{"spec.completions: Invalid value: 6: can only be modified in tandem with spec.parallelism"}},
		{"JOB-037 parallelism alone", indexed(5), resize(5, 3), nil},
		{"JOB-043 no completions any more", indexed(5), func(j *batchv1.Job) { j.Spec.Completions = nil },
			[]string{"spec.completions: Required value"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			old := pi(row.old)
			updated := old.DeepCopy()
			row.edit(updated)
			fieldtest.Check(t, ValidateUpdate(updated, old), row.want...)
		})
	}
}

// JOB-150, JOB-151: what of the template may change, and when.
func TestTemplateUpdate(t *testing.T) {
	nodeAffinity := &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: "zone", Operator: corev1.NodeSelectorOpExists}}}}}}
	podAffinity := &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
		{LabelSelector: &metav1.LabelSelector{}, TopologyKey: "zone"}}}
	placed := func(edit func(*corev1.PodSpec)) edit { return func(j *batchv1.Job) { edit(&j.Spec.Template.Spec) } }
	isSuspended := []batchv1.JobCondition{{Type: batchv1.JobSuspended, Status: corev1.ConditionTrue}}
	always := all()
	changes := map[string]struct {
		old, edit edit
		allowed   bool
	}{
		"node affinity": {always, placed(func(s *corev1.PodSpec) {
			s.Affinity = &corev1.Affinity{NodeAffinity: nodeAffinity}
		}), true},
		"node affinity beside another": {
			placed(func(s *corev1.PodSpec) { s.Affinity = &corev1.Affinity{PodAffinity: podAffinity} }),
			placed(func(s *corev1.PodSpec) { s.Affinity.NodeAffinity = nodeAffinity }), true,
		},
		"node affinity, taken away": {
			placed(func(s *corev1.PodSpec) { s.Affinity = &corev1.Affinity{NodeAffinity: nodeAffinity} }),
			placed(func(s *corev1.PodSpec) { s.Affinity = nil }), true,
		},
		"an empty affinity": {always, placed(func(s *corev1.PodSpec) { s.Affinity = &corev1.Affinity{} }), true},
		"node selector": {always, placed(func(s *corev1.PodSpec) {
			s.NodeSelector = map[string]string{"disk": "ssd"}
		}), true},
		"tolerations": {always, placed(func(s *corev1.PodSpec) {
			s.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		}), true},
		"scheduling gates": {always, placed(func(s *corev1.PodSpec) {
			s.SchedulingGates = []corev1.PodSchedulingGate{{Name: "a/b"}}
		}), true},
		"labels": {always, func(j *batchv1.Job) { j.Spec.Template.Labels["a"] = "b" }, true},
		"annotations": {always, func(j *batchv1.Job) { j.Spec.Template.Annotations = map[string]string{"a": "b"} },
			true},
		"requests of a container": {always, placed(func(s *corev1.PodSpec) {
			s.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
		}), true},
		"limits of an init container": {
			placed(func(s *corev1.PodSpec) { s.InitContainers = []corev1.Container{{Name: "a", Image: "a:1"}} }),
			placed(func(s *corev1.PodSpec) {
				s.InitContainers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
			}), true,
		},
		"the image": {always, placed(func(s *corev1.PodSpec) { s.Containers[0].Image = "b:2" }), false},
		"a container": {always, placed(func(s *corev1.PodSpec) {
			s.Containers = append(s.Containers, corev1.Container{Name: "b", Image: "b:1",
				ImagePullPolicy: corev1.PullAlways, TerminationMessagePolicy: corev1.TerminationMessageReadFile})
		}), false},
		"Pod affinity": {always,
			placed(func(s *corev1.PodSpec) { s.Affinity = &corev1.Affinity{PodAffinity: podAffinity} }),
			false},
		"Pod affinity, taken away": {
			placed(func(s *corev1.PodSpec) {
				s.Affinity = &corev1.Affinity{NodeAffinity: nodeAffinity, PodAffinity: podAffinity}
			}),
			placed(func(s *corev1.PodSpec) { s.Affinity = nil }), false,
		},
	}
	for name, change := range changes {
		for _, state := range []struct {
			name      string
			suspended bool
			status    batchv1.JobStatus
			rests     bool
		}{
			{"running", false, batchv1.JobStatus{StartTime: &metav1.Time{}, Active: 1}, false},
			{"not suspended, not started yet", false, batchv1.JobStatus{}, false},
			{"suspended from the start", true, batchv1.JobStatus{}, true},
			{"suspended, and its controller knows not", true, batchv1.JobStatus{StartTime: &metav1.Time{}}, false},
			{"suspended, its Pods not gone yet", true, batchv1.JobStatus{Active: 1, Conditions: isSuspended}, false},
			{"suspended again", true, batchv1.JobStatus{Conditions: isSuspended}, true},
			{"suspended again, by a controller that keeps the start", true,
				batchv1.JobStatus{StartTime: &metav1.Time{}, Conditions: isSuspended}, true},
			{"suspended after it was resumed", true, batchv1.JobStatus{StartTime: &metav1.Time{},
				Conditions: []batchv1.JobCondition{{Type: batchv1.JobSuspended, Status: corev1.ConditionFalse}},
			}, false},
		} {
			t.Run(name+"/"+state.name, func(t *testing.T) {
				old := pi(change.old)
				old.Spec.Suspend, old.Status = ptr.To(state.suspended), state.status
				updated := old.DeepCopy()
				change.edit(updated)
				var want []string
				if !state.rests || !change.allowed {
					want = []string{"spec.template: Invalid value"}
				}
				fieldtest.Check(t, ValidateUpdate(updated, old), want...)
			})
		}
	}
}

// JOB-150: the same request may let the Job go.
func TestTemplateUpdateOnResume(t *testing.T) {
	old := pi(func(j *batchv1.Job) { j.Spec.Suspend = ptr.To(true) })
	updated := old.DeepCopy()
	updated.Spec.Suspend, updated.Spec.Template.Spec.NodeSelector = ptr.To(false), map[string]string{"disk": "ssd"}
	fieldtest.Check(t, ValidateUpdate(updated, old))
}
