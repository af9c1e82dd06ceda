package job

import (
	"fmt"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/fieldcheck/fieldtest"
)

func restart(policy corev1.RestartPolicy) edit {
	return func(j *batchv1.Job) { j.Spec.Template.Spec.RestartPolicy = policy }
}

func all(edits ...edit) edit {
	return func(j *batchv1.Job) {
		for _, e := range edits {
			e(j)
		}
	}
}

// perIndex limits the failures of each index and of indexes.
func perIndex(limit, failed int32) edit {
	return func(j *batchv1.Job) {
		j.Spec.BackoffLimitPerIndex, j.Spec.MaxFailedIndexes = ptr.To(limit), ptr.To(failed)
	}
}

func TestValidate(t *testing.T) {
	n := ptr.To[int32]
	for _, row := range []struct {
		name string
		edit edit
		want []string
	}{
		{"JOB-024 no restart policy", restart(""),
			[]string{`spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"`}},
		{"JOB-024 Always", restart("Always"),
			[]string{`spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"`}},
		{"JOB-024 OnFailure", restart("OnFailure"), nil},
		{"JOB-024 no such policy", restart("Sometimes"),
			[]string{"spec.template.spec.restartPolicy: Unsupported value"}},
		{"JOB-023 no template", func(j *batchv1.Job) { j.Spec.Template = corev1.PodTemplateSpec{} }, []string{
			"spec.template.spec.restartPolicy: Required value", "spec.template.spec.containers: Required value"}},
		{"JOB-119 a deadline in the template is another", func(j *batchv1.Job) {
			j.Spec.ActiveDeadlineSeconds = ptr.To[int64](100)
			j.Spec.Template.Spec.ActiveDeadlineSeconds = ptr.To[int64](5)
		}, nil},
		{"JOB-026 negative numbers", func(j *batchv1.Job) {
			indexed(-1)(j)
			perIndex(-1, -1)(j)
			j.Spec.BackoffLimit, j.Spec.ActiveDeadlineSeconds = n(-1), ptr.To[int64](-1)
			j.Spec.TTLSecondsAfterFinished = n(-1)
		}, []string{"spec.parallelism: Invalid value: -1: must be greater than or equal to 0",
			"spec.completions: Invalid value: -1", "spec.backoffLimit: Invalid value: -1",
			"spec.backoffLimitPerIndex: Invalid value: -1", "spec.maxFailedIndexes: Invalid value: -1",
			"spec.activeDeadlineSeconds: Invalid value: -1", "spec.ttlSecondsAfterFinished: Invalid value: -1"}},
		{"JOB-026 zeros", func(j *batchv1.Job) {
			indexed(0)(j)
			perIndex(0, 0)(j)
			j.Spec.BackoffLimit, j.Spec.ActiveDeadlineSeconds = n(0), ptr.To[int64](0)
			j.Spec.TTLSecondsAfterFinished = n(0)
		}, nil},
		{"JOB-042 no such mode", func(j *batchv1.Job) {
			j.Spec.CompletionMode = ptr.To(batchv1.CompletionMode("Random"))
		},
			[]string{`spec.completionMode: Unsupported value: "Random": supported values: "NonIndexed", "Indexed"`}},
		{"JOB-043 Indexed without completions", func(j *batchv1.Job) {
			indexed(1)(j)
			j.Spec.Completions = nil
		}, []string{"spec.completions: Required value: when completion mode is Indexed"}},
		{"as many at once as may be", indexed(100_000), nil},
		{"too many at once", indexed(100_001),
			[]string{
				"spec.parallelism: Invalid value: 100001: must be less than or equal to 100000 when completion mode"}},
		{"JOB-032 a work queue", func(j *batchv1.Job) { j.Spec.Parallelism = n(100_001) }, nil},
		{"JOB-069 a limit per index without indexes", func(j *batchv1.Job) { j.Spec.BackoffLimitPerIndex = n(1) },
			[]string{"spec.backoffLimitPerIndex: Invalid value: 1: requires indexed completion mode"}},
		{"JOB-069 a limit per index and containers that restart", all(indexed(2), perIndex(1, 1), restart("OnFailure")),
			[]string{`spec.template.spec.restartPolicy: Invalid value: "OnFailure": only "Never" is supported when ` +
				`backoffLimitPerIndex is specified`}},
		{"JOB-069 a limit per index", all(indexed(2), perIndex(1, 2)), nil},
		{"JOB-074 failed indexes without their limit",
			all(indexed(2), func(j *batchv1.Job) { j.Spec.MaxFailedIndexes = n(1) }),
			[]string{"spec.backoffLimitPerIndex: Required value: when maxFailedIndexes is specified"}},
		{"JOB-073, JOB-074 more failed indexes than there are", all(indexed(2), perIndex(1, 3)),
			[]string{"spec.maxFailedIndexes: Invalid value: 3: must be less than or equal to completions"}},
		{"JOB-074 failed indexes without indexes", perIndex(1, 1), []string{
			"spec.backoffLimitPerIndex: Invalid value: 1: requires indexed",
			"spec.maxFailedIndexes: Invalid value: 1: requires indexed"}},
		{"JOB-074 very large, as bounds ask", all(indexed(100_001), perIndex(1, 10_000),
			func(j *batchv1.Job) { j.Spec.Parallelism = n(10_000) }), nil},
		{"JOB-074 very large, beyond the bounds", all(indexed(100_001), perIndex(1, 10_001),
			func(j *batchv1.Job) { j.Spec.Parallelism = n(10_001) }), []string{
			"spec.parallelism: Invalid value: 10001: must be less than or equal to 10000 when completions are above " +
				"100000",
			"spec.maxFailedIndexes: Invalid value: 10001: must be less than or equal to 10000 when completions"}},
		{"JOB-074 very large without a bound", all(indexed(100_001), func(j *batchv1.Job) {
			j.Spec.Parallelism, j.Spec.BackoffLimitPerIndex = n(1), n(1)
		}),
			[]string{"spec.maxFailedIndexes: Required value: must be specified when completions are above 100000"}},
		{"JOB-074 not very large", all(indexed(100_000), perIndex(1, 100_000)), nil},
		{"too many failed indexes", all(indexed(200_000), perIndex(1, 100_001),
			func(j *batchv1.Job) { j.Spec.Parallelism = n(1) }), []string{
			"spec.maxFailedIndexes: Invalid value: 100001: must be less than or equal to 100000",
			"spec.maxFailedIndexes: Invalid value: 100001: must be less than or equal to 10000 when"}},
		{"JOB-166 no such replacement policy", func(j *batchv1.Job) {
			j.Spec.PodReplacementPolicy = ptr.To(batchv1.PodReplacementPolicy("Never"))
		},
			[]string{
				`spec.podReplacementPolicy: Unsupported value: "Never": supported values: "Failed", "TerminatingOrFailed"`}},
		{"JOB-166 Failed", func(j *batchv1.Job) { j.Spec.PodReplacementPolicy = ptr.To(batchv1.Failed) }, nil},
		{"JOB-169 a failure policy waits for the end", func(j *batchv1.Job) {
			j.Spec.PodFailurePolicy = &batchv1.PodFailurePolicy{}
			j.Spec.PodReplacementPolicy = ptr.To(batchv1.TerminatingOrFailed)
		}, []string{`spec.podReplacementPolicy: Unsupported value: "TerminatingOrFailed": supported values: "Failed"`}},
		{"JOB-171, JOB-173 managed by another", func(j *batchv1.Job) { j.Spec.ManagedBy = ptr.To("acme.io/foo") }, nil},
		{"JOB-173 no path", func(j *batchv1.Job) { j.Spec.ManagedBy = ptr.To("acme.io") },
			[]string{`spec.managedBy: Invalid value: "acme.io": must be a domain-prefixed path`}},
		{"JOB-173 63 characters", func(j *batchv1.Job) {
			j.Spec.ManagedBy = ptr.To("acme.io/" + strings.Repeat("x", 55))
		}, nil},
		{"JOB-173 64 characters", func(j *batchv1.Job) {
			j.Spec.ManagedBy = ptr.To("acme.io/" + strings.Repeat("x", 56))
		},
			[]string{"spec.managedBy: Too long: may not be more than 63 bytes"}},
	} {
		t.Run(row.name, func(t *testing.T) { fieldtest.Check(t, Validate(pi(row.edit)), row.want...) })
	}
}

func failurePolicy(rules ...batchv1.PodFailurePolicyRule) edit {
	return func(j *batchv1.Job) { j.Spec.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: rules} }
}

func onExitCodes(action batchv1.PodFailurePolicyAction, operator batchv1.PodFailurePolicyOnExitCodesOperator,
	codes ...int32) batchv1.PodFailurePolicyRule {
	return batchv1.PodFailurePolicyRule{Action: action,
		OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{Operator: operator, Values: codes}}
}

func onConditions(types ...corev1.PodConditionType) batchv1.PodFailurePolicyRule {
	rule := batchv1.PodFailurePolicyRule{Action: "Ignore"}
	for _, kind := range types {
		rule.OnPodConditions = append(rule.OnPodConditions, batchv1.PodFailurePolicyOnPodConditionsPattern{Type: kind})
	}
	return rule
}

func codes(n int32) []int32 {
	list := make([]int32, n)
	for i := range list {
		list[i] = int32(i) + 1
	}
	return list
}

func TestFailurePolicy(t *testing.T) {
	in := func(container string) batchv1.PodFailurePolicyRule {
		rule := onExitCodes("FailJob", "In", 42)
		rule.OnExitCodes.ContainerName = &container
		return rule
	}
	withInit := func(j *batchv1.Job) {
		j.Spec.Template.Spec.InitContainers = []corev1.Container{{Name: "first", Image: "a:1"}}
	}
	both := onExitCodes("Count", "In", 1)
	both.OnPodConditions = onConditions("A").OnPodConditions
	rules := func(n int) (list []batchv1.PodFailurePolicyRule) {
		for range n {
			list = append(list, onExitCodes("Count", "In", 1))
		}
		return list
	}
	conditions := func(n int) (list []corev1.PodConditionType) {
		for i := range n {
			list = append(list, corev1.PodConditionType(fmt.Sprintf("c%d", i)))
		}
		return list
	}
	const rule0 = "spec.podFailurePolicy.rules[0]"
	for _, row := range []struct {
		name string
		edit edit
		want []string
	}{
		{"JOB-082, JOB-086, JOB-090 as in the example",
			failurePolicy(in("pi"), onConditions("DisruptionTarget"), onExitCodes("Count", "NotIn", 0, 3)), nil},
		{"JOB-083 containers that restart", all(failurePolicy(in("pi")), restart("OnFailure")),
			[]string{`spec.template.spec.restartPolicy: Invalid value: "OnFailure": only "Never" is supported when ` +
				`podFailurePolicy is specified`}},
		{"JOB-085 an init container", all(failurePolicy(in("first")), withInit), nil},
		{"JOB-085 no such container", failurePolicy(in("second")),
			[]string{rule0 + `.onExitCodes.containerName: Invalid value: "second": must be one of the container`}},
		{"JOB-086 no operator", failurePolicy(onExitCodes("Count", "", 1)),
			[]string{rule0 + ".onExitCodes.operator: Required value"}},
		{"JOB-086 no such operator", failurePolicy(onExitCodes("Count", "Like", 1)),
			[]string{rule0 + `.onExitCodes.operator: Unsupported value: "Like": supported values: "In", "NotIn"`}},
		{"JOB-087 no values", failurePolicy(onExitCodes("Count", "In")),
			[]string{rule0 + ".onExitCodes.values: Invalid value: null: at least one value is required"}},
		{"JOB-087 255 values", failurePolicy(onExitCodes("Count", "In", codes(255)...)), nil},
		{"JOB-087 256 values", failurePolicy(onExitCodes("Count", "In", codes(256)...)),
			[]string{rule0 + ".onExitCodes.values: Too many: 256: must have at most 255 items"}},
		{"JOB-087 unordered", failurePolicy(onExitCodes("Count", "In", 2, 1)),
			[]string{rule0 + ".onExitCodes.values: Invalid value: [2,1]: must be ordered"}},
		{"JOB-087 twice", failurePolicy(onExitCodes("Count", "In", 1, 1)),
			[]string{rule0 + ".onExitCodes.values[1]: Duplicate value: 1"}},
		{"JOB-087 success in In", failurePolicy(onExitCodes("Count", "In", 0, 1)),
			[]string{rule0 + ".onExitCodes.values[0]: Invalid value: 0: must not be 0 for the In operator"}},
		{"JOB-087 both requirements", failurePolicy(both),
			[]string{rule0 + ": Invalid value: specifying both OnExitCodes and OnPodConditions is not supported"}},
		{"JOB-087 no requirement", failurePolicy(batchv1.PodFailurePolicyRule{Action: "Count"}),
			[]string{rule0 + ": Invalid value: specifying one of OnExitCodes and OnPodConditions is required"}},
		{"JOB-087 20 rules", failurePolicy(rules(20)...), nil},
		{"JOB-087 21 rules", failurePolicy(rules(21)...),
			[]string{"spec.podFailurePolicy.rules: Too many: 21: must have at most 20 items"}},
		{"JOB-087 20 patterns", failurePolicy(onConditions(conditions(20)...)), nil},
		{"JOB-087 21 patterns", failurePolicy(onConditions(conditions(21)...)),
			[]string{rule0 + ".onPodConditions: Too many: 21: must have at most 20 items"}},
		{"a condition's type", failurePolicy(onConditions("a b")),
			[]string{rule0 + `.onPodConditions[0].type: Invalid value: "a b"`}},
		{"a condition's status", failurePolicy(batchv1.PodFailurePolicyRule{Action: "Ignore",
			OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{{Type: "A", Status: "Yes"}}}),
			[]string{rule0 +
				`.onPodConditions[0].status: Unsupported value: "Yes": supported values: "False", "True", "Unknown"`}},
		{"JOB-090 no action", failurePolicy(onExitCodes("", "In", 1)), []string{rule0 + ".action: Required value"}},
		{"JOB-090 no such action", failurePolicy(onExitCodes("Retry", "In", 1)),
			[]string{rule0 +
				`.action: Unsupported value: "Retry": supported values: "Count", "FailIndex", "FailJob", "Ignore"`}},
		{"JOB-090 an index fails where none has a limit", failurePolicy(onExitCodes("FailIndex", "In", 1)),
			[]string{rule0 + `.action: Invalid value: "FailIndex": requires the backoffLimitPerIndex to be set`}},
		{"JOB-090 an index fails", all(failurePolicy(onExitCodes("FailIndex", "In", 1)), indexed(2), perIndex(1, 1)),
			nil},
	} {
		t.Run(row.name, func(t *testing.T) { fieldtest.Check(t, Validate(pi(row.edit)), row.want...) })
	}
}

func TestSuccessPolicy(t *testing.T) {
	policy := func(rules ...batchv1.SuccessPolicyRule) edit {
		return func(j *batchv1.Job) {
			indexed(10)(j)
			j.Spec.SuccessPolicy = &batchv1.SuccessPolicy{Rules: rules}
		}
	}
	listed := func(text string) batchv1.SuccessPolicyRule {
		return batchv1.SuccessPolicyRule{SucceededIndexes: &text}
	}
	counted := func(n int32, text ...string) batchv1.SuccessPolicyRule {
		rule := batchv1.SuccessPolicyRule{SucceededCount: &n}
		if len(text) > 0 {
			rule.SucceededIndexes = &text[0]
		}
		return rule
	}
	many := func(n int) (list []batchv1.SuccessPolicyRule) {
		for range n {
			list = append(list, counted(1))
		}
		return list
	}
	const rule0 = "spec.successPolicy.rules[0]"
	unparsed := rule0 + ".succeededIndexes: Invalid value: %q: error parsing succeededIndexes: "
	for _, row := range []struct {
		name string
		edit edit
		want []string
	}{
		{"JOB-101, JOB-102 as in the example", policy(counted(1, "0,2-3"), listed("9"), counted(10)), nil},
		{"JOB-101 without indexes", func(j *batchv1.Job) { j.Spec.SuccessPolicy = &batchv1.SuccessPolicy{} },
			[]string{"spec.successPolicy: Invalid value"}},
		{"JOB-103 no rule", policy(), []string{"spec.successPolicy.rules: Required value"}},
		{"JOB-103 20 rules", policy(many(20)...), nil},
		{"JOB-103 21 rules", policy(many(21)...),
			[]string{"spec.successPolicy.rules: Too many: 21: must have at most 20 items"}},
		{"JOB-103 an empty rule", policy(batchv1.SuccessPolicyRule{}),
			[]string{rule0 + ": Required value: at least one of"}},
		{"JOB-103 no index", policy(listed("")),
			[]string{rule0 + ".succeededIndexes: Invalid value: \"\": at least one"}},
		{"JOB-102 beyond the last", policy(listed("10")),
			[]string{fmt.Sprintf(unparsed, "10") + `too large index: "10"`}},
		{"JOB-102 an interval beyond the last", policy(listed("8-10")),
			[]string{fmt.Sprintf(unparsed, "8-10") + `too large index: "10"`}},
		{"JOB-103 descending", policy(listed("3,1")),
			[]string{fmt.Sprintf(unparsed, "3,1") + "non-increasing order, previous: 3, current: 1"}},
		{"JOB-103 overlapping", policy(listed("1-3,3-4")),
			[]string{fmt.Sprintf(unparsed, "1-3,3-4") + "non-increasing order, previous: 3, current: 3"}},
		{"JOB-103 an interval of one", policy(listed("2-2")),
			[]string{fmt.Sprintf(unparsed, "2-2") + "non-increasing order, previous: 2, current: 2"}},
		{"JOB-102 three ends", policy(listed("1-2-3")),
			[]string{fmt.Sprintf(unparsed, "1-2-3") + `the fragment "1-2-3"`}},
		{"JOB-102 no number", policy(listed("1,x")), []string{fmt.Sprintf(unparsed, "1,x") + "cannot convert string"}},
		{"JOB-102 negative", policy(listed("-1")), []string{fmt.Sprintf(unparsed, "-1") + "cannot convert string"}},
		{"JOB-103 none counted", policy(counted(0)),
			[]string{rule0 + ".succeededCount: Invalid value: 0: must be greater than zero"}},
		{"JOB-103 more than all", policy(counted(11)),
			[]string{rule0 +
				".succeededCount: Invalid value: 11: must be less than or equal to 10 (the number of specified"}},
		{"JOB-103 as many as listed", policy(counted(3, "0,2-3")), nil},
		{"JOB-103 more than listed", policy(counted(4, "0,2-3")),
			[]string{rule0 +
				".succeededCount: Invalid value: 4: must be less than or equal to 3 (the number of indexes"}},
		{"a list beyond 64 KiB", policy(listed("1" + strings.Repeat(",", 64<<10))),
			[]string{rule0 + ".succeededIndexes: Too long", rule0 + ".succeededIndexes: Invalid value"}},
	} {
		t.Run(row.name, func(t *testing.T) { fieldtest.Check(t, Validate(pi(row.edit)), row.want...) })
	}
}

// JOB-201: the template of a CronJob's Jobs keeps to the rules of a Job, and leaves the selector to it.
func TestValidateTemplate(t *testing.T) {
	template := func(e edit) *batchv1.JobTemplateSpec {
		j := &batchv1.Job{Spec: batchv1.JobSpec{Template: pi().Spec.Template}}
		e(j)
		return &batchv1.JobTemplateSpec{Spec: j.Spec}
	}
	path := field.NewPath("spec", "jobTemplate")
	fieldtest.Check(t, ValidateTemplate(template(func(*batchv1.Job) {}), path))
	fieldtest.Check(t, ValidateTemplate(template(restart("Always")), path),
		"spec.jobTemplate.spec.template.spec.restartPolicy: Required value")
	fieldtest.Check(t, ValidateTemplate(template(func(j *batchv1.Job) {
		j.Spec.Selector, j.Spec.ManualSelector = &metav1.LabelSelector{}, ptr.To(true)
	}), path), "spec.jobTemplate.spec.selector: Invalid value: {}: `selector` will be auto-generated",
		`spec.jobTemplate.spec.manualSelector: Unsupported value: true: supported values: "nil", "false"`)
}
