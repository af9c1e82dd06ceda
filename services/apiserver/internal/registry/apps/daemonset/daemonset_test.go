package daemonset

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/fieldcheck/fieldtest"
	"keelson.dev/services/apiserver/internal/registry/table/tabletest"
)

// fluentd is a DaemonSet with the required fields alone, after edits, defaulted.
func fluentd(edits ...func(*appsv1.DaemonSet)) *appsv1.DaemonSet {
	d := &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: "fluentd.logs", Namespace: "kube-system"},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"name": "fluentd"}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"name": "fluentd"}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "fluentd", Image: "fluentd:v5"}}},
			},
		},
	}
	for _, edit := range edits {
		edit(d)
	}
	Default(d)
	return d
}

func bounds(unavailable, surge any) func(*appsv1.DaemonSet) {
	parse := func(bound any) *intstr.IntOrString {
		if text, ok := bound.(string); ok {
			return ptr.To(intstr.FromString(text))
		}
		return ptr.To(intstr.FromInt(bound.(int)))
	}
	return func(d *appsv1.DaemonSet) {
		d.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateDaemonSet{MaxUnavailable: parse(unavailable),
			MaxSurge: parse(surge)}
	}
}

// SET-157
func TestDefault(t *testing.T) {
	spec := fluentd().Spec
	rolling := spec.UpdateStrategy.RollingUpdate
	if spec.UpdateStrategy.Type != "RollingUpdate" || rolling.MaxUnavailable.IntValue() != 1 ||
		rolling.MaxSurge.IntValue() != 0 || spec.MinReadySeconds != 0 || *spec.RevisionHistoryLimit != 10 ||
		spec.Template.Spec.RestartPolicy != "Always" {
		t.Errorf("%+v", spec)
	}
	onDelete := fluentd(func(d *appsv1.DaemonSet) { d.Spec.UpdateStrategy.Type = "OnDelete" })
	if onDelete.Spec.UpdateStrategy.RollingUpdate != nil {
		t.Error("OnDelete has got bounds of a rolling update")
	}
}

func TestValidate(t *testing.T) {
	const rolling = "spec.updateStrategy.rollingUpdate"
	for _, row := range []struct {
		name string
		edit func(*appsv1.DaemonSet)
		want []string
	}{
		{"SET-118 the example", func(*appsv1.DaemonSet) {}, nil},
		{"SET-118 no labels", func(d *appsv1.DaemonSet) { d.Spec.Template.Labels = nil },
			[]string{"spec.template.metadata.labels: Invalid value"}},
		{"SET-118 no containers", func(d *appsv1.DaemonSet) { d.Spec.Template.Spec.Containers = nil },
			[]string{"spec.template.spec.containers: Required value"}},
		{"SET-119 OnFailure", func(d *appsv1.DaemonSet) { d.Spec.Template.Spec.RestartPolicy = "OnFailure" },
			[]string{`spec.template.spec.restartPolicy: Unsupported value: "OnFailure": supported values: "Always"`}},
		{"SET-120 no selector", func(d *appsv1.DaemonSet) { d.Spec.Selector = nil },
			[]string{"spec.selector: Required value"}},
		{"SET-120 both hold", both("fluentd", "ssd"), nil},
		{"SET-120 one does not", both("fluentd", "disk"), []string{"spec.template.metadata.labels: Invalid value"}},
		{"SET-121 labels differ", func(d *appsv1.DaemonSet) { d.Spec.Template.Labels["name"] = "b" },
			[]string{"spec.template.metadata.labels: Invalid value: {\"name\":\"b\"}: `selector` does not match " +
				"template `labels`"}},
		{"a deadline", func(d *appsv1.DaemonSet) { d.Spec.Template.Spec.ActiveDeadlineSeconds = ptr.To[int64](5) },
			[]string{"spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in DaemonSet is not " +
				"Supported"}},
		{"SET-157 OnDelete", func(d *appsv1.DaemonSet) { d.Spec.UpdateStrategy.Type = "OnDelete" }, nil},
		{"SET-157 unknown", func(d *appsv1.DaemonSet) { d.Spec.UpdateStrategy.Type = "Recreate" },
			[]string{
				`spec.updateStrategy.type: Unsupported value: "Recreate": supported values: "RollingUpdate", "OnDelete"`}},
		{"SET-157 surge", bounds(0, 1), nil},
		{"SET-157 percentages", bounds("100%", "0%"), nil},
		{"SET-157 neither", bounds(0, "0%"),
			[]string{rolling + ".maxUnavailable: Required value: cannot be 0 when maxSurge is 0"}},
		{"SET-157 both", bounds(1, 1),
			[]string{rolling + ".maxSurge: Invalid value: 1: may not be set when maxUnavailable is non-zero"}},
		{"SET-157 more than all", bounds("101%", 0),
			[]string{rolling + `.maxUnavailable: Invalid value: "101%": must not be greater than 100%`}},
		{"SET-157 surge of more than all", bounds(0, "101%"),
			[]string{rolling + `.maxSurge: Invalid value: "101%": must not be greater than 100%`}},
		{"SET-157 below zero", bounds(-1, 0), []string{rolling + ".maxUnavailable: Invalid value: -1"}},
		{"negative counts", func(d *appsv1.DaemonSet) {
			d.Spec.MinReadySeconds, d.Spec.RevisionHistoryLimit = -1, ptr.To[int32](-1)
		}, []string{"spec.minReadySeconds: Invalid value: -1", "spec.revisionHistoryLimit: Invalid value: -1"}},
	} {
		t.Run(row.name, func(t *testing.T) { fieldtest.Check(t, Validate(fluentd(row.edit)), row.want...) })
	}
}

// both selects by a label and an expression.
func both(name, disk string) func(*appsv1.DaemonSet) {
	return func(d *appsv1.DaemonSet) {
		d.Spec.Template.Labels = map[string]string{"name": name, "disk": disk}
		d.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{
			{Key: "disk", Operator: metav1.LabelSelectorOpIn, Values: []string{"ssd"}}}
	}
}

// SET-117: a name may have dots.
func TestName(t *testing.T) {
	if Resource.Strategy.Name != nil {
		t.Error("the name has a rule of its own")
	}
}

// SET-122
func TestValidateUpdate(t *testing.T) {
	fieldtest.Check(t, ValidateUpdate(fluentd(func(d *appsv1.DaemonSet) { d.Spec.MinReadySeconds = 5 }), fluentd()))
	fieldtest.Check(t, ValidateUpdate(fluentd(both("fluentd", "ssd")), fluentd()),
		"spec.selector: Invalid value")
}

// SET-158
func TestValidateStatusUpdate(t *testing.T) {
	old := &appsv1.DaemonSet{Status: appsv1.DaemonSetStatus{CollisionCount: ptr.To[int32](1)}}
	fieldtest.Check(t, ValidateStatusUpdate(old, old))
	d := &appsv1.DaemonSet{Status: appsv1.DaemonSetStatus{CurrentNumberScheduled: -1, NumberMisscheduled: -1,
		DesiredNumberScheduled: -1, NumberReady: -1, UpdatedNumberScheduled: -1, NumberAvailable: -1,
		NumberUnavailable: -1, ObservedGeneration: -1}}
	fieldtest.Check(t, ValidateStatusUpdate(d, old), "status.currentNumberScheduled: Invalid value: -1",
		"status.numberMisscheduled: Invalid value: -1", "status.desiredNumberScheduled: Invalid value: -1",
		"status.numberReady: Invalid value: -1", "status.updatedNumberScheduled: Invalid value: -1",
		"status.numberAvailable: Invalid value: -1", "status.numberUnavailable: Invalid value: -1",
		"status.observedGeneration: Invalid value: -1",
		"status.collisionCount: Invalid value: 0: cannot be decremented")
}

// SET-158: the number of the template counts the templates, and no client says otherwise.
func TestTemplateGeneration(t *testing.T) {
	write := Resource.ObjectWrites()
	d := fluentd(func(d *appsv1.DaemonSet) {
		d.Annotations = map[string]string{"deprecated.daemonset.template.generation": "7"}
	})
	write.PrepareForCreate(d)
	for _, row := range []struct {
		edit func(*appsv1.DaemonSet)
		want string
	}{
		{func(*appsv1.DaemonSet) {}, "1"},
		{func(d *appsv1.DaemonSet) { d.Spec.Template.Spec.Containers[0].Image = "fluentd:v6" }, "2"},
		{func(d *appsv1.DaemonSet) { d.Spec.MinReadySeconds = 3 }, "2"},
		{func(d *appsv1.DaemonSet) { d.Annotations = nil }, "2"},
		{func(d *appsv1.DaemonSet) { d.Annotations["deprecated.daemonset.template.generation"] = "x" }, "2"},
		{func(d *appsv1.DaemonSet) { d.Spec.Template.Labels["a"] = "b" }, "3"},
	} {
		next := d.DeepCopy()
		row.edit(next)
		write.PrepareForUpdate(next, d)
		if got := next.Annotations["deprecated.daemonset.template.generation"]; got != row.want {
			t.Errorf("template %s, want %s", got, row.want)
		}
		d = next
	}
}

// SET-159
func TestColumns(t *testing.T) { tabletest.Golden(t, Resource) }
