package resourcequota

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	libraryquota "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/apiserver/pkg/quota/v1/generic"
)

func list(namesAndAmounts ...string) corev1.ResourceList {
	amounts := corev1.ResourceList{}
	for i := 0; i < len(namesAndAmounts); i += 2 {
		amounts[corev1.ResourceName(namesAndAmounts[i])] = resource.MustParse(namesAndAmounts[i+1])
	}
	return amounts
}

func container(name string, requests, limits corev1.ResourceList) corev1.Container {
	return corev1.Container{Name: name, Resources: corev1.ResourceRequirements{Requests: requests, Limits: limits}}
}

func TestUnsaid(t *testing.T) {
	cpu, both := list("cpu", "1"), list("cpu", "1", "memory", "1")
	plain := &corev1.Pod{Spec: corev1.PodSpec{InitContainers: []corev1.Container{container("b", nil, nil)},
		Containers: []corev1.Container{container("c", cpu, both), container("a", nil, nil)}}}
	whole := plain.DeepCopy()
	whole.Spec.Resources = &corev1.ResourceRequirements{Requests: both}
	for _, row := range []struct {
		name    string
		pod     *corev1.Pod
		bounded []corev1.ResourceName
		want    string
	}{
		{"nothing is bounded", plain, nil, ""},
		{"what need not be said", plain, []corev1.ResourceName{"pods", "ephemeral-storage", "requests.example.com/gpu"},
			""},
		{"requests", plain, []corev1.ResourceName{"memory", "cpu"}, "must specify cpu for: a,b; memory for: a,b,c"},
		{"requests by their other name", plain, []corev1.ResourceName{"requests.cpu", "requests.memory"},
			"must specify requests.cpu for: a,b; requests.memory for: a,b,c"},
		{"limits", plain, []corev1.ResourceName{"limits.cpu", "limits.memory"},
			"must specify limits.cpu for: a,b; limits.memory for: a,b"},
		{"a Pod that says it for all", whole, []corev1.ResourceName{"cpu", "memory"}, ""},
	} {
		got := ""
		if err := unsaid(row.bounded, row.pod); err != nil {
			got = err.Error()
		}
		if got != row.want {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
}

func of(kind string) libraryquota.Evaluator {
	return generic.NewRegistry(evaluators()).Get(schema.ParseGroupResource(kind))
}

// POD-232: the effective request: the larger of init containers and containers, sidecars beside them, the Pod's own
// where it says so, and its overhead.
func TestPodUsage(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	sidecar := container("sidecar", list("cpu", "100m"), nil)
	sidecar.RestartPolicy = &always
	pod := &corev1.Pod{Spec: corev1.PodSpec{
		InitContainers: []corev1.Container{sidecar, container("init", list("cpu", "2"), nil)},
		Containers:     []corev1.Container{container("a", list("cpu", "1", "memory", "1Gi"), list("memory", "2Gi"))},
		Overhead:       list("cpu", "10m"),
	}}
	check := func(name string, want corev1.ResourceList) {
		t.Helper()
		got, err := of("pods").Usage(pod)
		if err != nil || !equality.Semantic.DeepEqual(got, want) {
			t.Errorf("%s: %v %v, want %v", name, got, err, want)
		}
	}
	check("an init container is the largest", list("pods", "1", "count/pods", "1", "cpu", "2110m", "requests.cpu",
		"2110m",
		"memory", "1Gi", "requests.memory", "1Gi", "limits.memory", "2Gi"))
	pod.Spec.Resources = &corev1.ResourceRequirements{Requests: list("cpu", "5")}
	check("the Pod says it", list("pods", "1", "count/pods", "1", "cpu", "5010m", "requests.cpu", "5010m",
		"memory", "1Gi", "requests.memory", "1Gi", "limits.memory", "2Gi"))
	pod.Status.Phase = corev1.PodFailed
	check("it has ended", list("count/pods", "1"))
	if _, err := of("pods").Usage(&corev1.Service{}); err == nil ||
		err.Error() != "expected a *v1.Pod, got *v1.Service" {
		t.Errorf("what is no Pod: %v", err)
	}
}

// What each kind is charged at.
func TestHandles(t *testing.T) {
	for _, row := range []struct {
		kind, subresource string
		operation         admission.Operation
		want              bool
	}{
		{"pods", "", "CREATE", true}, {"pods", "", "UPDATE", false}, {"pods", "status", "UPDATE", false},
		{"pods", "eviction", "CREATE", false}, {"pods", "resize", "UPDATE", true},
		{"services", "", "CREATE", true}, {"services", "", "UPDATE", true}, {"services", "status", "UPDATE", false},
		{"persistentvolumeclaims", "", "CREATE", true}, {"persistentvolumeclaims", "", "UPDATE", true},
		{"persistentvolumeclaims", "status", "UPDATE", true}, {"secrets", "", "CREATE", true},
		{"secrets", "", "UPDATE", false},
		{"resourceclaims.resource.k8s.io", "", "CREATE", true},
		{"resourceclaims.resource.k8s.io", "status", "UPDATE", false},
	} {
		a := admission.NewAttributesRecord(nil, nil, schema.GroupVersionKind{}, "ns", "name",
			schema.GroupVersionResource{Resource: row.kind}, row.subresource, row.operation, nil, false, nil)
		if got := of(row.kind).Handles(a); got != row.want {
			t.Errorf("%s/%s %s: %t", row.kind, row.subresource, row.operation, got)
		}
	}
}

func TestMatches(t *testing.T) {
	q := &corev1.ResourceQuota{Status: corev1.ResourceQuotaStatus{Hard: list("pods", "1", "secrets", "1")}}
	deadline := int64(1)
	pod, bounded := &corev1.Pod{}, &corev1.Pod{Spec: corev1.PodSpec{ActiveDeadlineSeconds: &deadline}}
	check := func(name, kind string, item runtime.Object, want bool) {
		t.Helper()
		if got, err := of(kind).Matches(q, item); got != want || err != nil {
			t.Errorf("%s: %t, %v", name, got, err)
		}
	}
	check("it counts Pods", "pods", pod, true)
	check("it counts no Services", "services", &corev1.Service{}, false)
	check("it counts Secrets", "secrets", &corev1.Secret{}, true)
	q.Spec.Scopes = []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeTerminating}
	check("it counts other Pods", "pods", pod, false)
	check("it counts such Pods", "pods", bounded, true)
	requirements := []corev1.ScopedResourceSelectorRequirement{{ScopeName: "Terminating", Operator: "Exists"},
		{ScopeName: "BestEffort", Operator: "Exists"}}
	met, err := of("pods").MatchingScopes(bounded, requirements)
	if err != nil || len(met) != 1 || met[0].ScopeName != "Terminating" {
		t.Errorf("the Pod meets %v, %v", met, err)
	}
}

// A refusal names the object as the client did.
func TestAsAsked(t *testing.T) {
	for _, row := range []struct{ name, prefix, want string }{
		{"web-abcde", "web-", "web-"}, {"web-abcdef", "web-", "web-abcdef"}, {"own", "web-", "own"}, {"own", "", "own"},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: row.name, GenerateName: row.prefix}}
		for operation, want := range map[admission.Operation]string{"CREATE": row.want, "UPDATE": row.name} {
			a := admission.NewAttributesRecord(pod, nil, schema.GroupVersionKind{}, "ns", row.name,
				schema.GroupVersionResource{Resource: "pods"}, "", operation, nil, false, nil)
			if got := asAsked(a).GetName(); got != want {
				t.Errorf("%s %s of %q: %q, want %q", operation, row.name, row.prefix, got, want)
			}
		}
	}
}
