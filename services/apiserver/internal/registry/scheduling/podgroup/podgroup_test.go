package podgroup

import (
	"testing"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/fieldcheck/fieldtest"
	"keelson.dev/services/apiserver/internal/registry/table/tabletest"
)

type edit func(*schedulingv1beta1.PodGroupSpec)

// gang returns a defaulted gang of three, edited.
func gang(edits ...edit) *schedulingv1beta1.PodGroup {
	g := &schedulingv1beta1.PodGroup{Spec: schedulingv1beta1.PodGroupSpec{
		SchedulingPolicy: schedulingv1beta1.PodGroupSchedulingPolicy{
			Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: 3}}}}
	for _, e := range edits {
		e(&g.Spec)
	}
	Default(g)
	return g
}

func basic(s *schedulingv1beta1.PodGroupSpec) {
	s.SchedulingPolicy = schedulingv1beta1.PodGroupSchedulingPolicy{Basic: &schedulingv1beta1.BasicSchedulingPolicy{}}
}

func least(n int32) edit {
	return func(s *schedulingv1beta1.PodGroupSpec) { s.SchedulingPolicy.Gang.MinCount = n }
}

func topology(keys ...string) edit {
	return func(s *schedulingv1beta1.PodGroupSpec) {
		s.SchedulingConstraints = &schedulingv1beta1.PodGroupSchedulingConstraints{}
		for _, key := range keys {
			s.SchedulingConstraints.Topology = append(s.SchedulingConstraints.Topology,
				schedulingv1beta1.TopologyConstraint{Key: key})
		}
	}
}

func all(s *schedulingv1beta1.PodGroupSpec) {
	s.DisruptionMode = &schedulingv1beta1.DisruptionMode{All: &schedulingv1beta1.AllDisruptionMode{}}
}

func from(workload, template string) edit {
	return func(s *schedulingv1beta1.PodGroupSpec) {
		s.WorkloadRef = &schedulingv1beta1.WorkloadReference{WorkloadName: workload, TemplateName: template}
	}
}

func priority(n int32) edit {
	return func(s *schedulingv1beta1.PodGroupSpec) { s.Priority = ptr.To(n) }
}

func TestColumns(t *testing.T) { tabletest.Golden(t, Resource) }

func TestValidate(t *testing.T) {
	for _, row := range []struct {
		name string
		edit edit
		want []string
	}{
		{"a gang", least(3), nil},
		{"a gang of one", least(1), nil},
		{"a gang of none", least(0), []string{"spec.schedulingPolicy.gang.minCount: Required value"}},
		{"a gang of less than none", least(-1), []string{
			"spec.schedulingPolicy.gang.minCount: Invalid value: -1: must be greater than or equal to 1"}},
		{"the basic policy", basic, nil},
		{"no policy", func(s *schedulingv1beta1.PodGroupSpec) { s.SchedulingPolicy.Gang = nil }, []string{
			"spec.schedulingPolicy: Invalid value: \"\": must specify one of: `basic`, `gang`"}},
		{"both policies", func(s *schedulingv1beta1.PodGroupSpec) {
			s.SchedulingPolicy.Basic = &schedulingv1beta1.BasicSchedulingPolicy{}
		}, []string{"spec.schedulingPolicy: Invalid value: \"{`basic`, `gang`}\": must specify exactly one of: " +
			"`basic`, `gang`"}},
		{"a topology", topology("topology.kubernetes.io/zone"), nil},
		{"no topology", topology(), nil},
		{"two topologies", topology("a", "b"), []string{
			"spec.schedulingConstraints.topology: Too many: 2: must have at most 1 item"}},
		{"a topology without a key", topology(""), []string{
			"spec.schedulingConstraints.topology[0].key: Required value"}},
		{"a topology of no label", topology("a b"), []string{
			"spec.schedulingConstraints.topology[0].key: Invalid value: \"a b\": name part must consist of"}},
		{"disrupted together", all, nil},
		{"disrupted in no way", func(s *schedulingv1beta1.PodGroupSpec) {
			s.DisruptionMode = &schedulingv1beta1.DisruptionMode{}
		}, []string{"spec.disruptionMode: Invalid value: \"\": must specify one of: `single`, `all`"}},
		{"disrupted in two ways", func(s *schedulingv1beta1.PodGroupSpec) {
			all(s)
			s.DisruptionMode.Single = &schedulingv1beta1.SingleDisruptionMode{}
		}, []string{"spec.disruptionMode: Invalid value: \"{`single`, `all`}\": must specify exactly one of: " +
			"`single`, `all`"}},
		{"a template", from("training", "workers"), nil},
		{"a template of nothing", from("", ""), []string{"spec.workloadRef.workloadName: Required value",
			"spec.workloadRef.templateName: Required value"}},
		{"a malformed template", from("a_b", "a.b"), []string{
			"spec.workloadRef.workloadName: Invalid value: \"a_b\": a lowercase RFC 1123 subdomain",
			"spec.workloadRef.templateName: Invalid value: \"a.b\": must not contain dots"}},
		{"the highest priority", priority(1000000000), nil},
		{"one more", priority(1000000001), []string{
			"spec.priority: Invalid value: 1000000001: must be less than or equal to 1000000000"}},
		{"a malformed class", func(s *schedulingv1beta1.PodGroupSpec) { s.PriorityClassName = "A" }, []string{
			"spec.priorityClassName: Invalid value: \"A\": a lowercase RFC 1123 subdomain"}},
	} {
		t.Run(row.name, func(t *testing.T) { fieldtest.Check(t, Validate(gang(row.edit)), row.want...) })
	}
}

func TestValidateUpdate(t *testing.T) {
	for _, row := range []struct {
		name     string
		old, new *schedulingv1beta1.PodGroup
		want     []string
	}{
		{"nothing", gang(), gang(), nil},
		{"the size", gang(), gang(least(5)), nil},
		{"a size that is none", gang(), gang(least(0)), []string{
			"spec.schedulingPolicy.gang.minCount: Required value"}},
		{"a gang no longer", gang(), gang(basic), []string{
			"spec.schedulingPolicy.basic: Invalid value: {}: field is immutable",
			"spec.schedulingPolicy.gang: Invalid value: null: field cannot be cleared once set"}},
		{"a gang from now on", gang(basic), gang(), []string{
			"spec.schedulingPolicy.basic: Invalid value: null: field is immutable",
			"spec.schedulingPolicy.gang: Invalid value: null: field cannot be set once created"}},
		{"another topology", gang(topology("a")), gang(topology("b")), []string{
			"spec.schedulingConstraints: Invalid value"}},
		{"a topology from now on", gang(), gang(topology("b")), []string{"spec.schedulingConstraints: Invalid value"}},
		{"together from now on", gang(), gang(all), []string{"spec.disruptionMode: Invalid value"}},
		{"another template", gang(from("a", "b")), gang(from("a", "c")), []string{"spec.workloadRef: Invalid value"}},
		{"another priority", gang(priority(1)), gang(priority(2)), []string{"spec.priority: Invalid value"}},
		{"another class", gang(), gang(func(s *schedulingv1beta1.PodGroupSpec) { s.PriorityClassName = "a" }),
			[]string{"spec.priorityClassName: Invalid value"}},
	} {
		t.Run(row.name, func(t *testing.T) { fieldtest.Check(t, ValidateUpdate(row.new, row.old), row.want...) })
	}
}

func TestValidateStatusUpdate(t *testing.T) {
	g := gang()
	g.Status.Conditions = []metav1.Condition{{Type: "PodGroupInitiallyScheduled", Status: "True", Reason: "Scheduled",
		LastTransitionTime: metav1.Unix(1, 0)}}
	fieldtest.Check(t, ValidateStatusUpdate(g, gang()))
	g.Status.Conditions[0].Status = "Perhaps"
	fieldtest.Check(t, ValidateStatusUpdate(g, gang()), `status.conditions[0].status: Unsupported value: "Perhaps"`)
}

// What is behind gates that are off is ignored, and nothing beside it.
func TestDropUnserved(t *testing.T) {
	served := gang(all, topology("a"), from("w", "t"), priority(5))
	asked := served.DeepCopy()
	asked.Spec.ParentCompositePodGroupName = ptr.To("parent")
	asked.Spec.PreemptionPolicy = ptr.To(schedulingv1beta1.PreemptNever)
	asked.Spec.ResourceClaims = []schedulingv1beta1.PodGroupResourceClaim{{Name: "gpu"}}
	DropUnserved(&asked.Spec)
	fieldtest.Check(t, ValidateUpdate(asked, served))
	if s := asked.Spec; s.ParentCompositePodGroupName != nil || s.PreemptionPolicy != nil || s.ResourceClaims != nil {
		t.Errorf("kept %+v", s)
	}
}

func TestDefault(t *testing.T) {
	if mode := gang().Spec.DisruptionMode; mode.Single == nil || mode.All != nil {
		t.Errorf("by default a group is disrupted as %+v", mode)
	}
	if mode := gang(all).Spec.DisruptionMode; mode.Single != nil || mode.All == nil {
		t.Errorf("a group that is disrupted together became %+v", mode)
	}
}
