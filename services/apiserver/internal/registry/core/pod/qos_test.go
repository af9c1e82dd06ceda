package pod

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestQOSClass(t *testing.T) {
	type r = corev1.ResourceRequirements
	limits := func(pairs ...string) r { return r{Limits: quantities(pairs...)} }
	requests := func(pairs ...string) r { return r{Requests: quantities(pairs...)} }
	full := limits("cpu", "500m", "memory", "128Mi")
	const guaranteed, burstable, bestEffort = corev1.PodQOSGuaranteed, corev1.PodQOSBurstable, corev1.PodQOSBestEffort
	rows := []struct {
		name       string
		containers []r
		inits      []r
		want       corev1.PodQOSClass
	}{
		{"SAF-078 SAF-081/1 everything equal", []r{{Requests: quantities("cpu", "500m", "memory", "128Mi"),
			Limits: full.Limits}}, nil, guaranteed},
		{"SAF-082 limits alone", []r{full}, nil, guaranteed},
		{"SAF-081/2 and a container with nothing", []r{full, {}}, nil, burstable},
		{"SAF-079 SAF-081/3 one request", []r{requests("cpu", "100m")}, nil, burstable},
		{"SAF-081/4 memory alone", []r{limits("memory", "128Mi")}, nil, burstable},
		{"SAF-080 SAF-081/5 nothing", []r{{}}, nil, bestEffort},
		{"SAF-081/6 storage", []r{requests("ephemeral-storage", "1Gi")}, nil, bestEffort},
		{"SAF-081/6 devices", []r{limits("example.com/gpu", "1")}, nil, bestEffort},
		{"SAF-081/7 two different ones, each equal", []r{full, limits("cpu", "1", "memory", "1Gi")}, nil, guaranteed},
		{"SAF-081/8 less than the limit", []r{{Requests: quantities("cpu", "250m", "memory", "128Mi"),
			Limits: full.Limits}}, nil, burstable},
		{"SAF-082 zero is nothing", []r{requests("cpu", "0", "memory", "0")}, nil, bestEffort},
		{"SAF-082 a zero limit is no limit", []r{limits("cpu", "0", "memory", "1Gi")}, nil, burstable},
		{"SAF-082 POD-231 init containers count", []r{full}, []r{{}}, burstable},
		{"POD-231 init containers alike", []r{full}, []r{full}, guaranteed},
		{"an init container with a request", []r{{}}, []r{requests("cpu", "1")}, burstable},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			p := &corev1.Pod{}
			for _, resources := range row.containers {
				p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Resources: *resources.DeepCopy()})
			}
			for _, resources := range row.inits {
				p.Spec.InitContainers = append(p.Spec.InitContainers,
					corev1.Container{Resources: *resources.DeepCopy()})
			}
			Default(p)
			objectWrites.PrepareForCreate(p)
			if got := p.Status.QOSClass; got != row.want {
				t.Errorf("got %s, want %s", got, row.want)
			}
		})
	}
}

func TestQOSClassOfTheWholePod(t *testing.T) {
	p := nginx()
	p.Spec.Resources = &corev1.ResourceRequirements{Limits: quantities("cpu", "1", "memory", "1Gi")}
	Default(p)
	if got := qosClass(&p.Spec); got != corev1.PodQOSGuaranteed {
		t.Errorf("got %s, want Guaranteed", got)
	}
}

// SAF-082: ephemeral containers never count.
func TestQOSClassIgnoresEphemeralContainers(t *testing.T) {
	p := nginx()
	p.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
		Resources: corev1.ResourceRequirements{Requests: quantities("cpu", "1")}}}}
	if got := qosClass(&p.Spec); got != corev1.PodQOSBestEffort {
		t.Errorf("got %s, want BestEffort", got)
	}
}
