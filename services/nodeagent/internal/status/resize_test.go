package status

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"keelson.dev/kit/podview"
	"keelson.dev/services/nodeagent/internal/observed"
	"keelson.dev/services/nodeagent/internal/podstate"
	"keelson.dev/services/nodeagent/internal/sizes"
)

func cpu(amount string) corev1.ResourceRequirements {
	list := func() corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(amount)}
	}
	return corev1.ResourceRequirements{Requests: list(), Limits: list()}
}

// DEP-214: conditions report a pending or current resize, and are removed when it is over.
func TestResizeConditions(t *testing.T) {
	put := func(reason string) func(*Input) {
		return func(in *Input) { in.Resize.Pending = &podstate.Waiting{Reason: reason, Message: "m"} }
	}
	resizing := plan(func(p *podstate.Plan) { p.Resizing = true })
	stale := func(in *Input) {
		for _, kind := range ofResizes {
			in.Pod.Status.Conditions = append(in.Pod.Status.Conditions, corev1.PodCondition{Type: kind,
				Status: corev1.ConditionTrue, ObservedGeneration: 2})
		}
	}
	none := corev1.PodCondition{}
	pending := corev1.PodCondition{Status: "True", Reason: "Deferred", Message: "m", ObservedGeneration: 3}
	progress := corev1.PodCondition{Status: "True", ObservedGeneration: 3}
	for _, row := range []struct {
		name              string
		in                Input
		pending, progress corev1.PodCondition
	}{
		{"neither", with(), none, none},
		{"it is over", with(stale), none, none},
		{"deferred", with(put("Deferred")), pending, none},
		{"under way", with(resizing), none, progress},
		{"stuck", with(resizing, func(in *Input) { in.Resize.Problem = "p" }), none,
			corev1.PodCondition{Status: "True", Reason: "Error", Message: "p", ObservedGeneration: 3}},
		{"another one is deferred meanwhile", with(stale, resizing, put("Deferred")), pending,
			corev1.PodCondition{Status: "True", ObservedGeneration: 2}},
		{"deferred, of a Pod that ends", with(put("Deferred"), ended(podstate.Terminate)), none, none},
	} {
		t.Run(row.name, func(t *testing.T) {
			got := Compute(row.in)
			for kind, want := range map[corev1.PodConditionType]corev1.PodCondition{
				corev1.PodResizePending: row.pending, corev1.PodResizeInProgress: row.progress} {
				is := none
				if c := podview.Condition(&corev1.Pod{Status: got}, kind); c != nil {
					is = corev1.PodCondition{Status: c.Status, Reason: c.Reason, Message: c.Message,
						ObservedGeneration: c.ObservedGeneration}
				}
				if is != want {
					t.Errorf("%s is %+v, want %+v", kind, is, want)
				}
			}
		})
	}
}

// DEP-214: while a resize is in progress, the status reports what a container was allocated and what it still has,
// and the same for the Pod as a whole.
func TestSizesAreReported(t *testing.T) {
	before, after := cpu("1"), cpu("2")
	allocated := func(in *Input) {
		in.Pod.Spec.Containers[0].Resources, in.Pod.Spec.Resources = after, &after
		in.Resize.Actuation.Updated = map[string]sizes.Instance{"m0": {Resources: before}}
	}
	actuated := func(in *Input) { in.Resize.Actuation.Cgroup = &sizes.Size{Pod: &before} }
	for _, row := range []struct {
		name       string
		in         Input
		has, whole string
	}{
		{"done", with(allocated, instance("m", 0, observed.Running)), "2", "2"},
		{"under way", with(allocated, actuated, instance("m", 0, observed.Running),
			plan(func(p *podstate.Plan) { p.Resizing = true })), "1", "1"},
		{"the container has ended", with(allocated, actuated, instance("m", 0, observed.Exited, 0),
			plan(func(p *podstate.Plan) { p.Resizing = true })), "2", "1"},
	} {
		got := Compute(row.in)
		c := got.ContainerStatuses[0]
		if requests := c.AllocatedResources.Cpu().String(); requests != "2" ||
			c.Resources.Limits.Cpu().String() != row.has {
			t.Errorf("%s: allocated %s, has %+v", row.name, requests, c.Resources)
		}
		if got.AllocatedResources.Cpu().String() != "2" || got.Resources.Limits.Cpu().String() != row.whole {
			t.Errorf("%s: as a whole allocated %v, has %+v", row.name, got.AllocatedResources, got.Resources)
		}
	}
	if got := Compute(with(instance("m", 0, observed.Running))); got.Resources != nil || got.AllocatedResources != nil {
		t.Errorf("nothing is asked for as a whole, and it has %+v", got.Resources)
	}
}
