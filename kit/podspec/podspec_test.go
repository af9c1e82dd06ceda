package podspec

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

// nginx is the smallest Pod, before defaulting.
func nginx() *corev1.PodSpec {
	return &corev1.PodSpec{Containers: []corev1.Container{{
		Name: "nginx", Image: "nginx:1.14.2", Ports: []corev1.ContainerPort{{ContainerPort: 80}},
	}}}
}

// row is one rule: what is changed on nginx and what is said about it.
type row struct {
	name   string
	change func(*corev1.PodSpec)
	want   []string
	// bare leaves the change undefaulted.
	bare bool
	opts Options
}

func (r row) run(t *testing.T) {
	t.Helper()
	t.Run(r.name, func(t *testing.T) {
		t.Helper()
		spec := nginx()
		SetDefaults(spec)
		r.change(spec)
		if !r.bare {
			SetDefaults(spec)
		}
		before := spec.DeepCopy()
		got := texts(Validate(spec, field.NewPath("spec"), r.opts))
		if !slices.Equal(got, slices.Sorted(slices.Values(r.want))) {
			t.Errorf("got  %q\nwant %q", got, r.want)
		}
		if !equal(before, spec) {
			t.Error("Validate changed the spec")
		}
	})
}

func runAll(t *testing.T, rows []row) {
	t.Helper()
	for _, r := range rows {
		r.run(t)
	}
}

func texts(errs field.ErrorList) []string {
	list := make([]string, 0, len(errs))
	for _, err := range errs {
		list = append(list, err.Error())
	}
	slices.Sort(list)
	return list
}

// first changes the only container of nginx.
func first(change func(*corev1.Container)) func(*corev1.PodSpec) {
	return func(s *corev1.PodSpec) { change(&s.Containers[0]) }
}

// also adds a main container.
func also(c corev1.Container) func(*corev1.PodSpec) {
	return func(s *corev1.PodSpec) { s.Containers = append(s.Containers, c) }
}

// withInit adds an init container.
func withInit(c corev1.Container) func(*corev1.PodSpec) {
	return func(s *corev1.PodSpec) { s.InitContainers = append(s.InitContainers, c) }
}

// withVolume adds a volume called v.
func withVolume(source corev1.VolumeSource) func(*corev1.PodSpec) {
	return func(s *corev1.PodSpec) {
		s.Volumes = append(s.Volumes, corev1.Volume{Name: "v", VolumeSource: source})
	}
}

func quantities(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}

func execProbe() *corev1.Probe {
	return &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"true"}}}}
}

func httpGet(port int) *corev1.HTTPGetAction {
	return &corev1.HTTPGetAction{Port: intstr.FromInt(port)}
}

var always = ptr.To(corev1.ContainerRestartPolicyAlways)

func equal(a, b *corev1.PodSpec) bool { return apiequality.Semantic.DeepEqual(a, b) }
