package horizontalpodautoscaler

import (
	"reflect"
	"slices"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/fieldcheck/fieldtest"
	"keelson.dev/services/apiserver/internal/registry/table/tabletest"
	"keelson.dev/services/apiserver/internal/scheme"
)

// DEP-210: the names it is known by, and the columns.
func TestResource(t *testing.T) {
	if Resource.Group != "autoscaling" || Resource.ClusterScoped || Resource.Status == nil ||
		!slices.Equal(Resource.ShortNames, []string{"hpa"}) || !slices.Equal(Resource.Categories, []string{"all"}) {
		t.Errorf("%+v", Resource)
	}
	tabletest.Golden(t, Resource)
}

func valid(change func(*autoscalingv2.HorizontalPodAutoscalerSpec)) *autoscalingv2.HorizontalPodAutoscaler {
	a := &autoscalingv2.HorizontalPodAutoscaler{Spec: autoscalingv2.HorizontalPodAutoscalerSpec{MaxReplicas: 3,
		ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment",
			Name: "web"}}}
	change(&a.Spec)
	Default(a)
	return a
}

// DEP-186: the target's kind is all that a known one needs; of others the group is asked for.
func TestValidate(t *testing.T) {
	type spec = autoscalingv2.HorizontalPodAutoscalerSpec
	target := func(version, kind, name string) func(*spec) {
		return func(s *spec) {
			s.ScaleTargetRef = autoscalingv2.CrossVersionObjectReference{APIVersion: version, Kind: kind, Name: name}
		}
	}
	queue, ten := autoscalingv2.MetricIdentifier{Name: "queue"}, autoscalingv2.MetricTarget{Type: "AverageValue",
		AverageValue: ptr.To(resource.MustParse("10"))}
	none := func(by autoscalingv2.MetricSpec) func(*spec) {
		return func(s *spec) { s.MinReplicas, s.Metrics = ptr.To[int32](0), append(s.Metrics, by) }
	}
	const noGroup = `spec.scaleTargetRef.apiVersion: Invalid value: "": apiVersion must specify API group`
	for _, row := range []struct {
		name   string
		change func(*spec)
		want   []string
	}{
		{"defaults", func(*spec) {}, nil},
		{"least bounds", func(s *spec) { s.MinReplicas, s.MaxReplicas = ptr.To[int32](1), 1 }, nil},
		{"none at least, by an object", none(autoscalingv2.MetricSpec{Type: "Object",
			Object: &autoscalingv2.ObjectMetricSource{Metric: queue, Target: ten, DescribedObject: autoscalingv2.
				CrossVersionObjectReference{Kind: "Service", Name: "web"}}}), nil},
		{"none at least, by what is elsewhere", none(autoscalingv2.MetricSpec{Type: "External",
			External: &autoscalingv2.ExternalMetricSource{Metric: queue, Target: ten}}), nil},
		{"none at least, by Pods", none(autoscalingv2.MetricSpec{Type: "Pods",
			Pods: &autoscalingv2.PodsMetricSource{Metric: queue, Target: ten}}), []string{"spec.metrics: Forbidden: " +
			"must specify at least one Object or External metric to support scaling to zero replicas"}},
		{"below the bounds", func(s *spec) { s.MinReplicas, s.MaxReplicas = ptr.To[int32](-1), 0 }, []string{
			"spec.minReplicas: Invalid value: -1: must be greater than or equal to 0",
			"spec.maxReplicas: Invalid value: 0: must be greater than 0"}},
		{"more at least than at most", func(s *spec) { s.MinReplicas = ptr.To[int32](4) }, []string{
			"spec.maxReplicas: Invalid value: 3: must be greater than or equal to `minReplicas`"}},
		{"DEP-186 ReplicaSet", target("", "ReplicaSet", "frontend"), nil},
		{"DEP-186 Deployment", target("", "Deployment", "web"), nil},
		{"DEP-186 StatefulSet", target("", "StatefulSet", "web"), nil},
		{"ReplicationController", target("", "ReplicationController", "web"), nil},
		{"ReplicationController of v1", target("v1", "ReplicationController", "web"), nil},
		{"a kind of a group", target("example.com/v1", "Foo", "web"), nil},
		{"DEP-186 a kind without its group", target("", "Foo", "web"), []string{noGroup}},
		{"a version without its group", target("v1", "Deployment", "web"),
			[]string{`spec.scaleTargetRef.apiVersion: Invalid value: "v1": apiVersion must specify API group`}},
		{"no version at all", target("a/b/c", "Deployment", "web"),
			[]string{`spec.scaleTargetRef.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string`}},
		{"nothing", target("apps/v1", "", ""), []string{"spec.scaleTargetRef.kind: Required value",
			"spec.scaleTargetRef.name: Required value"}},
		{"no path segments", target("apps/v1", "De/ployment", "we%b"), []string{
			`spec.scaleTargetRef.kind: Invalid value: "De/ployment": may not contain '/'`,
			`spec.scaleTargetRef.name: Invalid value: "we%b": may not contain '%'`}},
	} {
		t.Run(row.name, func(t *testing.T) { fieldtest.Check(t, Validate(valid(row.change)), row.want...) })
	}
}

// A target that was stored before is not asked for its group; a new one is.
func TestValidateUpdate(t *testing.T) {
	kind := func(kind string) *autoscalingv2.HorizontalPodAutoscaler {
		return valid(func(s *autoscalingv2.HorizontalPodAutoscalerSpec) {
			s.ScaleTargetRef = autoscalingv2.CrossVersionObjectReference{Kind: kind, Name: "web"}
		})
	}
	fieldtest.Check(t, ValidateUpdate(kind("Foo"), kind("Foo")))
	fieldtest.Check(t, ValidateUpdate(kind("Foo"), kind("Deployment")),
		`spec.scaleTargetRef.apiVersion: Invalid value: "": apiVersion must specify API group`)
	broken := kind("Foo")
	broken.Spec.MaxReplicas = 0
	fieldtest.Check(t, ValidateUpdate(broken, kind("Foo")), "spec.maxReplicas: Invalid value: 0",
		"spec.maxReplicas: Invalid value: 0")
}

func TestValidateBehavior(t *testing.T) {
	type rules = autoscalingv2.HPAScalingRules
	policy := func(kind autoscalingv2.HPAScalingPolicyType, value, seconds int32) *rules {
		return &rules{Policies: []autoscalingv2.HPAScalingPolicy{{Type: kind, Value: value, PeriodSeconds: seconds}}}
	}
	window := func(seconds int32) *rules { return &rules{StabilizationWindowSeconds: &seconds} }
	tolerance := func(q string) *rules { return &rules{Tolerance: ptr.To(resource.MustParse(q))} }
	const at = "spec.behavior.scaleUp."
	for _, row := range []struct {
		name  string
		rules *rules
		want  []string
	}{
		{"no window", window(0), nil},
		{"the longest window", window(3600), nil},
		{"a longer one", window(3601),
			[]string{at + "stabilizationWindowSeconds: Invalid value: 3601: must be less than or equal to 3600"}},
		{"a negative one", window(-1),
			[]string{at + "stabilizationWindowSeconds: Invalid value: -1: must be greater than or equal to zero"}},
		{"the shortest period", policy("Pods", 1, 1), nil},
		{"the longest period", policy("Percent", 1, 1800), nil},
		{"a longer one", policy("Pods", 1, 1801),
			[]string{at + "policies[0].periodSeconds: Invalid value: 1801: must be less than or equal to 1800"}},
		{"nothing", policy("", 0, 0), []string{
			at + `policies[0].type: Unsupported value: "": supported values: "Percent", "Pods"`,
			at + "policies[0].value: Invalid value: 0: must be greater than zero",
			at + "policies[0].periodSeconds: Invalid value: 0: must be greater than zero"}},
		{"no policy", &rules{Policies: []autoscalingv2.HPAScalingPolicy{}},
			[]string{at + "policies: Required value: must specify at least one Policy"}},
		{"a choice", &rules{SelectPolicy: ptr.To(autoscalingv2.DisabledPolicySelect)}, nil},
		{"no such choice", &rules{SelectPolicy: ptr.To[autoscalingv2.ScalingPolicySelect]("Best")},
			[]string{at + `selectPolicy: Unsupported value: "Best": supported values: "Disabled", "Max", "Min"`}},
		{"no tolerance", tolerance("0"), nil},
		{"less", tolerance("-0.01"), []string{at +
			`tolerance: Invalid value: "-10m": must be greater than or equal to 0`}},
	} {
		t.Run(row.name, func(t *testing.T) {
			fieldtest.Check(t, Validate(valid(func(s *autoscalingv2.HorizontalPodAutoscalerSpec) {
				s.Behavior = &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleUp: row.rules}
			})), row.want...)
		})
	}
	fieldtest.Check(t, Validate(valid(func(s *autoscalingv2.HorizontalPodAutoscalerSpec) {
		s.Behavior = &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleDown: window(-1)}
	})), "spec.behavior.scaleDown.stabilizationWindowSeconds: Invalid value: -1")
}

func TestValidateMetrics(t *testing.T) {
	type metric = autoscalingv2.MetricSpec
	const at = "spec.metrics[0]."
	one := ptr.To(resource.MustParse("1"))
	name := autoscalingv2.MetricIdentifier{Name: "hits"}
	use := func(percent int32) autoscalingv2.MetricTarget {
		return autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: &percent}
	}
	of := func(target autoscalingv2.MetricTarget) metric {
		return metric{Type: "Resource", Resource: &autoscalingv2.ResourceMetricSource{Name: "cpu", Target: target}}
	}
	object := autoscalingv2.CrossVersionObjectReference{Kind: "Service", Name: "web"}
	each := autoscalingv2.MetricTarget{Type: "AverageValue", AverageValue: one}
	all := autoscalingv2.MetricTarget{Type: "Value", Value: one}
	for _, row := range []struct {
		name   string
		metric metric
		want   []string
	}{
		{"resource", of(use(1)), nil},
		{"no utilization", of(use(0)),
			[]string{at + "resource.target.averageUtilization: Invalid value: 0: must be greater than 0"}},
		{"no target", of(autoscalingv2.MetricTarget{}), []string{at + "resource.target.type: Required value",
			at + "resource.target.averageUtilization: Required value: must set either a target raw value or a target"}},
		{"two targets", of(autoscalingv2.MetricTarget{Type: "Utilization", AverageUtilization: ptr.To[int32](1),
			AverageValue: one}), []string{at + "resource.target.averageValue: Forbidden: may not set both"}},
		{"nothing", of(autoscalingv2.MetricTarget{Type: "Part", Value: ptr.To(resource.MustParse("0")),
			AverageValue: ptr.To(resource.MustParse("-1"))}), []string{
			at +
				`resource.target.type: Unsupported value: "Part": supported values: "AverageValue", "Utilization", "Value"`,
			at + `resource.target.value: Invalid value: "0": must be positive`,
			at + `resource.target.averageValue: Invalid value: "-1": must be positive`}},
		{"a resource without a name", metric{Type: "Resource", Resource: &autoscalingv2.ResourceMetricSource{
			Target: use(1)}}, []string{at + "resource.name: Required value"}},
		{"a container without a name", metric{Type: "ContainerResource",
			ContainerResource: &autoscalingv2.ContainerResourceMetricSource{Name: "cpu", Target: use(1)}},
			[]string{at + "containerResource.container: Required value: must specify a container"}},
		{"pods", metric{Type: "Pods", Pods: &autoscalingv2.PodsMetricSource{Metric: name, Target: each}}, nil},
		{"pods without an average", metric{Type: "Pods", Pods: &autoscalingv2.PodsMetricSource{Metric: name,
			Target: all}},
			[]string{at + "pods.target.averageValue: Required value: must specify a positive target averageValue"}},
		{"pods without a name", metric{Type: "Pods", Pods: &autoscalingv2.PodsMetricSource{Target: each}},
			[]string{at + "pods.metric.name: Required value"}},
		{"object", metric{Type: "Object", Object: &autoscalingv2.ObjectMetricSource{Metric: name, Target: all,
			DescribedObject: object}}, nil},
		{"no object", metric{Type: "Object", Object: &autoscalingv2.ObjectMetricSource{Metric: name, Target: use(1)}},
			[]string{at + "object.describedObject.kind: Required value",
				at + "object.describedObject.name: Required value",
				at + "object.target.averageValue: Required value: must set either a target value"}},
		{"no version", metric{Type: "Object", Object: &autoscalingv2.ObjectMetricSource{Metric: name, Target: all,
			DescribedObject: autoscalingv2.CrossVersionObjectReference{APIVersion: "a/b/c", Kind: "A", Name: "a"}}},
			[]string{at + `object.describedObject.apiVersion: Invalid value: "a/b/c"`}},
		{"external", metric{Type: "External", External: &autoscalingv2.ExternalMetricSource{Metric: name,
			Target: each}},
			nil},
		{"external twice", metric{Type: "External", External: &autoscalingv2.ExternalMetricSource{Metric: name,
			Target: autoscalingv2.MetricTarget{Type: "Value", Value: one, AverageValue: one}}},
			[]string{at + "external.target.value: Forbidden: may not set both"}},
		{"no type", metric{}, []string{at + "type: Required value: must specify a metric source type"}},
		{"no such type", metric{Type: "Moon"}, []string{at + `type: Unsupported value: "Moon": supported values: ` +
			`"ContainerResource", "External", "Object", "Pods", "Resource"`}},
		{"no source", metric{Type: "Pods"},
			[]string{at + "pods: Required value: must populate information for the given metric source"}},
		{"another source", metric{Type: "Pods", Pods: &autoscalingv2.PodsMetricSource{Metric: name, Target: each},
			Resource: of(use(1)).Resource},
			[]string{at + "resource: Forbidden: must populate the given metric source only"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			fieldtest.Check(t, Validate(valid(func(s *autoscalingv2.HorizontalPodAutoscalerSpec) {
				s.Metrics = []metric{row.metric}
			})), row.want...)
		})
	}
}

func TestValidateStatus(t *testing.T) {
	a := &autoscalingv2.HorizontalPodAutoscaler{}
	fieldtest.Check(t, ValidateStatusUpdate(a, a))
	a.Status.CurrentReplicas, a.Status.DesiredReplicas = -1, -1
	fieldtest.Check(t, ValidateStatusUpdate(a, a), "status.currentReplicas: Invalid value: -1",
		"status.desiredReplicas: Invalid value: -1")
}

// DEP-241: without a figure the target is 80 % of the CPU request, in both versions.
func TestDefaults(t *testing.T) {
	a := valid(func(*autoscalingv2.HorizontalPodAutoscalerSpec) {})
	if cpu := a.Spec.Metrics[0].Resource; *a.Spec.MinReplicas != 1 || len(a.Spec.Metrics) != 1 ||
		cpu.Name != corev1.ResourceCPU || *cpu.Target.AverageUtilization != 80 || a.Spec.Behavior != nil {
		t.Errorf("%+v", a.Spec)
	}
	a = valid(func(s *autoscalingv2.HorizontalPodAutoscalerSpec) {
		s.Behavior = &autoscalingv2.HorizontalPodAutoscalerBehavior{}
	})
	most := ptr.To(autoscalingv2.MaxChangePolicySelect)
	want := &autoscalingv2.HorizontalPodAutoscalerBehavior{
		ScaleUp: &autoscalingv2.HPAScalingRules{StabilizationWindowSeconds: ptr.To[int32](0), SelectPolicy: most,
			Policies: []autoscalingv2.HPAScalingPolicy{{Type: "Pods", Value: 4, PeriodSeconds: 15},
				{Type: "Percent", Value: 100, PeriodSeconds: 15}}},
		ScaleDown: &autoscalingv2.HPAScalingRules{SelectPolicy: most,
			Policies: []autoscalingv2.HPAScalingPolicy{{Type: "Percent", Value: 100, PeriodSeconds: 15}}},
	}
	if !reflect.DeepEqual(a.Spec.Behavior, want) {
		t.Errorf("%+v, %+v", a.Spec.Behavior.ScaleUp, a.Spec.Behavior.ScaleDown)
	}
}

// DEP-241, DEP-185.
func TestDefaultsOfV1(t *testing.T) {
	s, err := scheme.New()
	if err != nil {
		t.Fatal(err)
	}
	if err := Resource.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name        string
		target      *int32
		annotations map[string]string
		want        *int32
	}{
		{"DEP-241 no target", nil, nil, ptr.To[int32](80)},
		{"DEP-185 a target", ptr.To[int32](50), nil, ptr.To[int32](50)},
		{"another metric", nil, map[string]string{"autoscaling.alpha.kubernetes.io/metrics": `[{"type":"Resource",` +
			`"resource":{"name":"memory","targetAverageUtilization":60}}]`}, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			a := &autoscalingv1.HorizontalPodAutoscaler{TypeMeta: metav1.TypeMeta{Kind: "HorizontalPodAutoscaler"},
				ObjectMeta: metav1.ObjectMeta{Annotations: row.annotations},
				Spec:       autoscalingv1.HorizontalPodAutoscalerSpec{TargetCPUUtilizationPercentage: row.target}}
			s.Default(a)
			if got := a.Spec.TargetCPUUtilizationPercentage; !ptr.Equal(got, row.want) ||
				*a.Spec.MinReplicas != 1 || a.Kind == "" {
				t.Errorf("%+v", a)
			}
		})
	}
}

// An annotation of v1 tells nothing in v2, and is not kept to be taken for something later.
func TestAnnotationsOfV1(t *testing.T) {
	a := valid(func(*autoscalingv2.HorizontalPodAutoscalerSpec) {})
	a.Annotations = map[string]string{"a": "b", "autoscaling.alpha.kubernetes.io/metrics": "[]"}
	for name, prepare := range map[string]func(*autoscalingv2.HorizontalPodAutoscaler){
		"create": Resource.ObjectWrites().PrepareForCreate,
		"update": func(a *autoscalingv2.HorizontalPodAutoscaler) {
			Resource.ObjectWrites().PrepareForUpdate(a, a.DeepCopy())
		},
		"status": func(a *autoscalingv2.HorizontalPodAutoscaler) {
			Resource.StatusWrites().PrepareForUpdate(a, a.DeepCopy())
		},
	} {
		written := a.DeepCopy()
		if prepare(written); len(written.Annotations) != 1 {
			t.Errorf("%s: %v", name, written.Annotations)
		}
	}
}
