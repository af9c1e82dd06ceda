package pod

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// sized is a Burstable Pod that runs: two containers, a sidecar and an init container.
func sized() *corev1.Pod {
	asks := func(c corev1.Container) corev1.Container {
		c.Image = "i"
		c.Resources = corev1.ResourceRequirements{Requests: quantities("cpu", "100m", "memory", "64Mi"),
			Limits: quantities("cpu", "200m", "memory", "128Mi", "ephemeral-storage", "1Gi")}
		return c
	}
	p := nginx()
	p.Spec.Containers = []corev1.Container{
		asks(corev1.Container{Name: "a", ResizePolicy: []corev1.ContainerResizePolicy{
			{ResourceName: "memory", RestartPolicy: corev1.RestartContainer}}}),
		asks(corev1.Container{Name: "b"})}
	p.Spec.InitContainers = []corev1.Container{asks(corev1.Container{Name: "init"}),
		asks(corev1.Container{Name: "s", RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)})}
	Default(p)
	p.Status.QOSClass = corev1.PodQOSBurstable
	return p
}

func first(change func(*corev1.ResourceRequirements)) func(*corev1.Pod) {
	return func(p *corev1.Pod) { change(&p.Spec.Containers[0].Resources) }
}

// DEP-214: what a resize may change, and what it may not.
func TestValidateResize(t *testing.T) {
	const at, only = "spec.containers[0].resources", "only cpu and memory resources are mutable"
	nothing := func(*corev1.Pod) {}
	wholePod := func(r *corev1.ResourceRequirements) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.Resources = r }
	}
	large := func(limits ...string) *corev1.ResourceRequirements {
		return &corev1.ResourceRequirements{Requests: quantities("cpu", "1", "memory", "1Gi"),
			Limits: quantities(limits...)}
	}
	rows := []struct {
		name        string
		old, change func(*corev1.Pod)
		want        []string
	}{
		{"nothing", nothing, nothing, nil},
		{"more of both", nothing, first(func(r *corev1.ResourceRequirements) {
			r.Requests["cpu"], r.Limits["memory"] = quantities("c", "150m")["c"], quantities("m", "256Mi")["m"]
		}), nil},
		{"a lower memory limit", nothing, first(func(r *corev1.ResourceRequirements) {
			r.Limits["memory"] = quantities("m", "64Mi")["m"]
		}), nil},
		{"a limit where there was none", first(func(r *corev1.ResourceRequirements) { delete(r.Limits, "cpu") }),
			first(func(r *corev1.ResourceRequirements) { r.Limits["cpu"] = quantities("c", "1")["c"] }), nil},
		{"a sidecar", nothing, func(p *corev1.Pod) {
			p.Spec.InitContainers[1].Resources.Limits["cpu"] = quantities("c", "1")["c"]
		}, nil},
		{"an init container", nothing, func(p *corev1.Pod) {
			p.Spec.InitContainers[0].Resources.Limits["cpu"] = quantities("c", "1")["c"]
		}, nil},
		{"an init container that would have to run again", func(p *corev1.Pod) {
			p.Spec.InitContainers[0].ResizePolicy = p.Spec.Containers[0].ResizePolicy
		}, func(p *corev1.Pod) { p.Spec.InitContainers[0].Resources.Limits["cpu"] = quantities("c", "1")["c"] },
			[]string{"spec.initContainers[0]: Forbidden: non-sidecar init containers with a resize policy of " +
				"RestartContainer cannot be resized"}},
		{"a sidecar that restarts", func(p *corev1.Pod) {
			p.Spec.InitContainers[1].ResizePolicy = p.Spec.Containers[0].ResizePolicy
		}, func(p *corev1.Pod) { p.Spec.InitContainers[1].Resources.Limits["cpu"] = quantities("c", "1")["c"] }, nil},
		{"no request any more", nothing, first(func(r *corev1.ResourceRequirements) { delete(r.Requests, "cpu") }),
			[]string{at + ".requests: Forbidden: resource requests cannot be removed"}},
		{"no limit any more", nothing, first(func(r *corev1.ResourceRequirements) { delete(r.Limits, "memory") }),
			[]string{at + ".limits: Forbidden: resource limits cannot be removed"}},
		{"a request above its limit", nothing, first(func(r *corev1.ResourceRequirements) {
			r.Requests["cpu"] = quantities("c", "201m")["c"]
		}), []string{at + ".requests: Invalid value: \"201m\": must be less than or equal to cpu limit of 200m"}},
		{"other storage", nothing, first(func(r *corev1.ResourceRequirements) {
			r.Limits["ephemeral-storage"] = quantities("e", "2Gi")["e"]
		}), []string{at + ": Forbidden: " + only}},
		{"a resize policy", nothing, func(p *corev1.Pod) { p.Spec.Containers[0].ResizePolicy = nil },
			[]string{"spec.containers[0].resizePolicy: Forbidden: " + only}},
		{"another order", nothing, func(p *corev1.Pod) {
			c := p.Spec.Containers
			c[0], c[1] = c[1], c[0]
		}, []string{"spec.containers[0].name: Forbidden: containers may not be renamed or reordered on resize",
			"spec.containers[1].name: Forbidden: containers may not be renamed or reordered on resize"}},
		{"a container less", nothing, func(p *corev1.Pod) { p.Spec.Containers = p.Spec.Containers[:1] },
			[]string{"spec.containers: Forbidden: containers may not be added or removed on resize"}},
		{"another class", nothing, func(p *corev1.Pod) {
			for _, list := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
				for i := range list {
					r := &list[i].Resources
					r.Requests["cpu"], r.Requests["memory"] = r.Limits["cpu"], r.Limits["memory"]
				}
			}
		}, []string{`spec: Invalid value: "Guaranteed": Pod QOS Class may not change as a result of resizing`}},
		{"a static Pod", func(p *corev1.Pod) { p.Annotations = map[string]string{mirrorAnnotation: "x"} }, nothing,
			[]string{"spec: Forbidden: static pods cannot be resized"}},
		{"a Pod of Windows", func(p *corev1.Pod) { p.Spec.OS = &corev1.PodOS{Name: corev1.Windows} }, nothing,
			[]string{"spec: Forbidden: windows pods cannot be resized"}},
		{"a node that says what containers have", reporting(&corev1.ResourceRequirements{}), nothing, nil},
		{"a node that does not", reporting(nil), nothing,
			[]string{"spec: Forbidden: Pod running on node without support for resize"}},
		{"what drivers allocated", func(p *corev1.Pod) {
			p.Status.NodeAllocatableResourceClaimStatuses = make([]corev1.NodeAllocatableResourceClaimStatus, 1)
		}, nothing, []string{"spec: Forbidden: pods with node allocatable resource claims cannot be resized"}},
		{"the Pod as a whole", wholePod(large("cpu", "2")), wholePod(large("cpu", "3")), nil},
		{
			"the Pod as a whole, below its containers",
			wholePod(large("cpu", "2")),
			wholePod(large("cpu", "199m")),
			[]string{
				`spec.containers[0].resources.limits[cpu]: Invalid value: "200m": must be less than or equal to pod ` +
					"limits of 199m",
				`spec.containers[1].resources.limits[cpu]: Invalid value: "200m": must be less than or equal to pod ` +
					"limits of 199m",
				`spec.initContainers[0].resources.limits[cpu]: Invalid value: "200m": must be less than or equal to pod ` +
					"limits of 199m",
				`spec.initContainers[1].resources.limits[cpu]: Invalid value: "200m": must be less than or equal to pod ` +
					"limits of 199m",
				`spec.resources.requests: Invalid value: "1": must be less than or equal to cpu limit of 199m`,
			},
		},
		{"no longer as a whole", wholePod(large("cpu", "2")), wholePod(nil),
			[]string{"spec.resources: Forbidden: pod-level resources cannot be removed"}},
		{"no limit as a whole", wholePod(large("cpu", "2")), wholePod(large()),
			[]string{"spec.resources.limits: Forbidden: pod-level resource limits cannot be removed"}},
		{"no request as a whole", wholePod(large("cpu", "2")), wholePod(&corev1.ResourceRequirements{
			Requests: quantities("cpu", "1"), Limits: quantities("cpu", "2")}),
			[]string{"spec.resources.requests: Forbidden: pod-level resource requests cannot be removed"}},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			old := sized()
			row.old(old)
			p := old.DeepCopy()
			row.change(p)
			prepareForResize(p, old)
			wantErrors(t, ValidateResize(p, old), row.want...)
		})
	}
}

func reporting(resources *corev1.ResourceRequirements) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "b"}, {Name: "a", Resources: resources,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	}
}

// DEP-214: a resize changes what the Pod asks for and nothing else, and makes a new generation.
func TestPrepareForResize(t *testing.T) {
	old := sized()
	p := old.DeepCopy()
	p.Labels = map[string]string{"a": "b"}
	p.Spec.Containers[0].Image, p.Spec.ActiveDeadlineSeconds = "other", ptr.To[int64](1)
	p.Status.Phase = corev1.PodFailed
	prepareForResize(p, old)
	if p.Generation != 1 || p.Spec.Containers[0].Image != "i" || p.Spec.ActiveDeadlineSeconds != nil ||
		p.Status.Phase != corev1.PodRunning || p.Labels != nil {
		t.Errorf("nothing is resized, and the Pod is now %+v", p)
	}
	p.Spec.Containers[0].Resources.Limits["cpu"] = quantities("c", "1")["c"]
	prepareForResize(p, old)
	if limit := old.Spec.Containers[0].Resources.Limits["cpu"]; p.Generation != 2 || limit.String() != "200m" {
		t.Errorf("generation %d, the old Pod has %s", p.Generation, &limit)
	}
}
