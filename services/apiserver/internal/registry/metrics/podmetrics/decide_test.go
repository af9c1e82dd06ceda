package podmetrics

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metricsv1 "k8s.io/metrics/pkg/apis/metrics/v1"

	"keelson.dev/services/apiserver/internal/usage"
)

var now = time.Unix(1_700_000_000, 0)

// pod runs on node n1 since ten minutes.
func pod(change ...func(*corev1.Pod)) *corev1.Pod {
	start := metav1.NewTime(now.Add(-10 * time.Minute))
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{NodeName: "n1",
			InitContainers: []corev1.Container{{Name: "sidecar"}},
			Containers:     []corev1.Container{{Name: "app"}, {Name: "log"}},
			EphemeralContainers: []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
				Name: "debug"}}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &start},
	}
	for _, c := range change {
		c(p)
	}
	return p
}

// readings are two, 20 seconds apart, of which the later is of now; lines are what each says of the Pod besides.
func readings(t *testing.T, earlier, later string) usage.Readings {
	t.Helper()
	parse := func(text string, at time.Time) *usage.Reading {
		reading, err := usage.Parse(strings.NewReader(text), at)
		if err != nil {
			t.Fatal(err)
		}
		return reading
	}
	return usage.Readings{Earlier: parse(earlier, now.Add(-20*time.Second)), Later: parse(later, now)}
}

// says are the lines of a container with the given CPU time and its time in milliseconds, if any.
func says(container, cpu string) string {
	labels := `{container="` + container + `",namespace="ns",pod="web"} `
	return "container_cpu_usage_seconds_total" + labels + cpu + "\ncontainer_memory_working_set_bytes" + labels +
		"1024\n"
}

func TestMetricsOf(t *testing.T) {
	all := readings(t, says("app", "10")+says("log", "1 1699999979000")+says("sidecar", "0")+says("debug",
		"0")+says("x", "0"),
		says("x", "5")+says("debug", "1")+says("sidecar", "2")+says("log", "1 1699999999000")+says("app", "20"))
	got, ok := metricsOf(pod(), all, now)
	if !ok || got.Name != "web" || got.Namespace != "ns" || got.Labels["app"] != "web" ||
		!got.CreationTimestamp.Time.Equal(now) {
		t.Fatalf("%+v, %v", got, ok)
	}
	var names []string
	for _, c := range got.Containers {
		names = append(names, c.Name+" "+c.Usage.Cpu().String()+" "+c.Usage.Memory().String())
	}
	want := []string{"app 500m 1Ki", "log 0 1Ki", "sidecar 100m 1Ki", "debug 50m 1Ki"}
	if !slices.Equal(names, want) {
		t.Errorf("%q, want %q: in the order of the spec, and no others", names, want)
	}
	if !got.Timestamp.Time.Equal(now.Add(-time.Second)) || got.Window.Duration != 20*time.Second {
		t.Errorf("at %s over %s, want the time of the oldest and the longest window", got.Timestamp,
			got.Window.Duration)
	}
	if total := sumOf(&got); total.usage.Cpu().MilliValue() != 650 || total.usage.Memory().Value() != 4096 {
		t.Errorf("the sum is %v", total.usage)
	}
}

// Pods of which there is nothing to tell.
func TestNoMetricsOf(t *testing.T) {
	well := readings(t, says("app", "10"), says("app", "20"))
	for name, row := range map[string]struct {
		pod      *corev1.Pod
		readings usage.Readings
		ok       bool
	}{
		"one that runs":            {pod(), well, true},
		"one that starts":          {pod(func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending }), well, true},
		"no node":                  {pod(func(p *corev1.Pod) { p.Spec.NodeName = "" }), well, false},
		"not taken yet":            {pod(func(p *corev1.Pod) { p.Status.StartTime = nil }), well, false},
		"succeeded":                {pod(func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }), well, false},
		"failed":                   {pod(func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }), well, false},
		"no reading":               {pod(), usage.Readings{}, false},
		"another name":             {pod(func(p *corev1.Pod) { p.Name = "other" }), well, false},
		"another space":            {pod(func(p *corev1.Pod) { p.Namespace = "other" }), well, false},
		"no container that it has": {pod(func(p *corev1.Pod) { p.Spec.Containers = nil }), well, false},
		"as old as the reading": {pod(func(p *corev1.Pod) { *p.Status.StartTime = metav1.NewTime(now) }), well,
			true},
		"younger than the reading": {pod(func(p *corev1.Pod) { *p.Status.StartTime = metav1.NewTime(now.Add(1)) }),
			well, false},
	} {
		if _, ok := metricsOf(row.pod, row.readings, now); ok != row.ok {
			t.Errorf("%s: %v, want %v", name, ok, row.ok)
		}
	}
}

// Only the nodes of Pods that can be measured are asked, each once.
func TestNodesOf(t *testing.T) {
	on := func(node string, change ...func(*corev1.Pod)) corev1.Pod {
		p := pod(change...)
		p.Spec.NodeName = node
		return *p
	}
	got := nodesOf([]corev1.Pod{on("b"), on("a"), on("b"), on(""),
		on("c", func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed })})
	if !slices.Equal(got, []string{"b", "a"}) {
		t.Errorf("%v", got)
	}
	if total := sumOf(&metricsv1.PodMetrics{}); total.usage.Cpu().String() != "0" {
		t.Errorf("the sum of none is %v", total.usage)
	}
}
