package deployment

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/fieldcheck/fieldtest"
)

func bounds(maxUnavailable, maxSurge intstr.IntOrString) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) {
		d.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxUnavailable: &maxUnavailable,
			MaxSurge: &maxSurge}
	}
}

func tier(value string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) {
		d.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "tier", Operator: metav1.LabelSelectorOpIn, Values: []string{"a", "b"}},
		}}
		d.Spec.Template.Labels = map[string]string{"tier": value}
	}
}

func TestValidate(t *testing.T) {
	number, share := intstr.FromInt32, intstr.FromString
	for _, row := range []struct {
		name string
		edit func(*appsv1.Deployment)
		want []string
	}{
		{"DEP-012 no selector", func(d *appsv1.Deployment) { d.Spec.Selector = nil },
			[]string{"spec.selector: Required value"}},
		{"DEP-013 empty selector", func(d *appsv1.Deployment) { d.Spec.Selector = &metav1.LabelSelector{} },
			[]string{`spec.selector: Invalid value: {}: empty selector is invalid for deployment`}},
		{"DEP-013 selector and labels differ", func(d *appsv1.Deployment) { d.Spec.Template.Labels["app"] = "b" },
			[]string{"spec.template.metadata.labels: Invalid value: {\"app\":\"b\"}: `selector` does not match " +
				"template `labels`"}},
		{"DEP-009 no labels", func(d *appsv1.Deployment) { d.Spec.Template.Labels = nil },
			[]string{"spec.template.metadata.labels: Invalid value"}},
		{"DEP-015 expression that holds", tier("a"), nil},
		{"DEP-015 expression that does not", tier("c"), []string{"spec.template.metadata.labels: Invalid value"}},
		{"DEP-015 unknown operator", func(d *appsv1.Deployment) {
			d.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "tier", Operator: "Like"}}
		}, []string{`spec.selector.matchExpressions[0].operator: Invalid value: "Like"`,
			"spec.selector: Invalid value"}},
		{"DEP-010 restart on failure", func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
		},
			[]string{`spec.template.spec.restartPolicy: Unsupported value: "OnFailure": supported values: "Always"`}},
		{"DEP-010 restart never",
			func(d *appsv1.Deployment) { d.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever },
			[]string{`spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"`}},
		{"a deadline in the template", func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.ActiveDeadlineSeconds = ptr.To[int64](5)
		},
			[]string{"spec.template.spec.activeDeadlineSeconds: Forbidden"}},
		{"DEP-009 Pod rules hold", func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers = nil },
			[]string{"spec.template.spec.containers: Required value"}},
		{"DEP-011 negative replicas", func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](-1) },
			[]string{"spec.replicas: Invalid value: -1: must be greater than or equal to 0"}},
		{"DEP-011 negative minReadySeconds", func(d *appsv1.Deployment) { d.Spec.MinReadySeconds = -1 },
			[]string{"spec.minReadySeconds: Invalid value: -1"}},
		{"DEP-011 negative revisionHistoryLimit",
			func(d *appsv1.Deployment) { d.Spec.RevisionHistoryLimit = ptr.To[int32](-1) },
			[]string{"spec.revisionHistoryLimit: Invalid value: -1"}},
		{"DEP-011 negative progressDeadlineSeconds",
			func(d *appsv1.Deployment) { d.Spec.ProgressDeadlineSeconds = ptr.To[int32](-1) },
			[]string{"spec.progressDeadlineSeconds: Invalid value: -1: must be greater than or equal to 0",
				"spec.progressDeadlineSeconds: Invalid value: -1: must be greater than minReadySeconds"}},
		{"DEP-133 deadline equal to minReadySeconds", func(d *appsv1.Deployment) {
			d.Spec.MinReadySeconds, d.Spec.ProgressDeadlineSeconds = 10, ptr.To[int32](10)
		}, []string{"spec.progressDeadlineSeconds: Invalid value: 10: must be greater than minReadySeconds"}},
		{"DEP-133 deadline one more", func(d *appsv1.Deployment) {
			d.Spec.MinReadySeconds, d.Spec.ProgressDeadlineSeconds = 10, ptr.To[int32](11)
		}, nil},
		{"DEP-133 default deadline too short", func(d *appsv1.Deployment) { d.Spec.MinReadySeconds = 600 },
			[]string{"spec.progressDeadlineSeconds: Invalid value: 600: must be greater than minReadySeconds"}},
		{"DEP-018 unknown strategy", func(d *appsv1.Deployment) { d.Spec.Strategy.Type = "Fast" },
			[]string{`spec.strategy.type: Unsupported value: "Fast": supported values: "Recreate", "RollingUpdate"`}},
		{"DEP-018 Recreate", func(d *appsv1.Deployment) {
			d.Spec.Strategy.Type = appsv1.RecreateDeploymentStrategyType
		}, nil},
		{"DEP-073 Recreate with bounds", func(d *appsv1.Deployment) {
			bounds(number(1), number(1))(d)
			d.Spec.Strategy.Type = appsv1.RecreateDeploymentStrategyType
		}, []string{"spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'"}},
		{"DEP-064 both zero", bounds(number(0), number(0)),
			[]string{
				"spec.strategy.rollingUpdate.maxUnavailable: Invalid value: 0: may not be 0 when `maxSurge` is 0"}},
		{"DEP-064 both zero percent", bounds(share("0%"), share("0%")),
			[]string{"spec.strategy.rollingUpdate.maxUnavailable: Invalid value: \"0%\": may not be 0 when " +
				"`maxSurge` is 0"}},
		{"DEP-064 no surge", bounds(number(1), number(0)), nil},
		{"DEP-064 none unavailable", bounds(number(0), number(1)), nil},
		{"DEP-064 no surge and nothing else", func(d *appsv1.Deployment) {
			d.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxSurge: ptr.To(number(0))}
		}, nil},
		{"DEP-066 negative numbers", bounds(number(-1), number(-2)),
			[]string{"spec.strategy.rollingUpdate.maxUnavailable: Invalid value: -1",
				"spec.strategy.rollingUpdate.maxSurge: Invalid value: -2"}},
		{"DEP-066 no percent sign", bounds(share("10"), share("abc")),
			[]string{`spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "10": a valid percent string`,
				`spec.strategy.rollingUpdate.maxSurge: Invalid value: "abc": a valid percent string`}},
		{"DEP-066 more than all unavailable", bounds(share("101%"), number(1)),
			[]string{
				`spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "101%": must not be greater than 100%`}},
		{"DEP-066 surge over 100%", bounds(share("100%"), share("250%")), nil},
	} {
		t.Run(row.name, func(t *testing.T) { fieldtest.Check(t, Validate(changed(row.edit)), row.want...) })
	}
}

func TestValidateUpdate(t *testing.T) {
	for _, row := range []struct {
		name string
		edit func(*appsv1.Deployment)
		want []string
	}{
		{"DEP-014 the selector stays", func(d *appsv1.Deployment) {
			d.Spec.Selector.MatchLabels["tier"], d.Spec.Template.Labels["tier"] = "a", "a"
		}, []string{"spec.selector: Invalid value: "}},
		{"DEP-079 a new selector without the labels",
			func(d *appsv1.Deployment) { d.Spec.Selector.MatchLabels["tier"] = "a" },
			[]string{"spec.selector: Invalid value: ", "spec.template.metadata.labels: Invalid value"}},
		{"DEP-209 the template may change",
			func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "nginx:1.16.1" }, nil},
		{"POD-045 any field of an init container may change", func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.InitContainers = []corev1.Container{{
				Name: "renamed", Image: "busybox:2", Command: []string{"true"},
				Env:           []corev1.EnvVar{{Name: "A", Value: "2"}},
				RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways),
			}}
		}, nil},
		{"labels may be added to the template",
			func(d *appsv1.Deployment) { d.Spec.Template.Labels["track"] = "canary" }, nil},
		{"DEP-018 rules hold on update too", func(d *appsv1.Deployment) { d.Spec.Strategy.Type = "Fast" },
			[]string{"spec.strategy.type: Unsupported value"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			old := changed(func(d *appsv1.Deployment) {
				d.Spec.Template.Spec.InitContainers = []corev1.Container{{Name: "init", Image: "busybox:1",
					Command: []string{"sh"}}}
			})
			fieldtest.Check(t, ValidateUpdate(changed(row.edit), old), row.want...)
		})
	}
	t.Run("DEP-014 the message", func(t *testing.T) {
		d := changed(func(d *appsv1.Deployment) {
			d.Spec.Selector.MatchLabels = map[string]string{"app": "web", "a": "b"}
			d.Spec.Template.Labels["a"] = "b"
		})
		errs := ValidateUpdate(d, changed())
		if len(errs) != 1 || errs[0].Detail != "field is immutable" {
			t.Errorf("got %v", errs)
		}
	})
}
