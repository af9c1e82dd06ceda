package typedfields_test

import (
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/builder3"
	openapiutil "k8s.io/kube-openapi/pkg/util"

	"keelson.dev/services/apiserver/internal/openapi"
	"keelson.dev/services/apiserver/internal/scheme"
	"keelson.dev/services/apiserver/internal/typedfields"
)

var (
	pods    = corev1.SchemeGroupVersion.WithKind("Pod")
	reviews = authenticationv1.SchemeGroupVersion.WithKind("TokenReview")
)

// The registry's suite shows with random objects of all kinds that the managers are those of the library.

func TestObjectsThatAreNotStoredHaveNoManagers(t *testing.T) {
	manager := managerOf(t, types(t), reviews, "")
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: "t",
		Audiences: []string{"a"}}}
	after := manager.UpdateNoErrors(&authenticationv1.TokenReview{}, review, "somebody")
	if got := after.(*authenticationv1.TokenReview).ManagedFields; len(got) != 0 {
		t.Errorf("the managers of a review's fields are %v, want none", got)
	}
	pod := &corev1.Pod{Spec: corev1.PodSpec{NodeName: "n"}}
	after = managerOf(t, types(t), pods, "").UpdateNoErrors(&corev1.Pod{}, pod, "somebody")
	if got := after.(*corev1.Pod).ManagedFields; len(got) != 1 || got[0].Manager != "somebody" {
		t.Errorf("the managers of a Pod's fields are %v, want somebody", got)
	}
}

func TestWhatIsAppliedIsChecked(t *testing.T) {
	for field, allowed := range map[string]bool{"nodeName": true, "unheardOf": false} {
		pod := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{field: "x"}}}
		pod.SetGroupVersionKind(pods)
		_, err := managerOf(t, types(t), pods, "").Apply(&corev1.Pod{}, pod, "somebody", false)
		if allowed && err != nil || !allowed && (err == nil || !strings.Contains(err.Error(), ".spec.unheardOf")) {
			t.Errorf("applying spec.%s: %v", field, err)
		}
	}
}

// BenchmarkPodStatus is all work for managed fields of what a nodeagent writes when a Pod is ready, with the library's
// types and with ours.
func BenchmarkPodStatus(b *testing.B) {
	live := managerOf(b, libraryTypes(b), pods, "").UpdateNoErrors(&corev1.Pod{}, examplePod(),
		"controllers").(*corev1.Pod)
	live.UID = "u"
	started := live.DeepCopy()
	started.Status = exampleStatus()
	started = managerOf(b, libraryTypes(b), pods, "status").UpdateNoErrors(live, started, "agent").(*corev1.Pod)
	ready := started.DeepCopy()
	ready.Status.Conditions[0].Status = corev1.ConditionTrue
	ready.Status.ContainerStatuses[0].Ready = true
	for name, types := range map[string]managedfields.TypeConverter{"library": libraryTypes(b), "ours": types(b)} {
		b.Run(name, func(b *testing.B) {
			manager := managerOf(b, types, pods, "status")
			b.ReportAllocs()
			for b.Loop() {
				next := *ready
				if _, err := manager.Update(started, &next, "agent"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func examplePod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "d", Labels: map[string]string{"app": "a", "hash": "h"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "r", UID: "o"}}},
		Spec: corev1.PodSpec{
			NodeName: "n", RestartPolicy: corev1.RestartPolicyAlways, ServiceAccountName: "default",
			Tolerations: []corev1.Toleration{{Key: "not-ready", Operator: corev1.TolerationOpExists},
				{Key: "unreachable", Operator: corev1.TolerationOpExists}},
			Containers: []corev1.Container{{Name: "c", Image: "i", Command: []string{"sleep", "1000"},
				VolumeMounts: []corev1.VolumeMount{{Name: "token", MountPath: "/token", ReadOnly: true}}}},
			Volumes: []corev1.Volume{{Name: "token"}},
		},
	}
}

func exampleStatus() corev1.PodStatus {
	status := corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.1", PodIPs: []corev1.PodIP{{IP: "10.0.0.1"}},
		HostIP: "10.1.0.1", HostIPs: []corev1.HostIP{{IP: "10.1.0.1"}},
		ContainerStatuses: []corev1.ContainerStatus{{Name: "c", Image: "i", ImageID: "d", ContainerID: "e",
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}}
	for _, of := range []corev1.PodConditionType{corev1.PodReady, corev1.ContainersReady, corev1.PodInitialized,
		corev1.PodScheduled, corev1.PodReadyToStartContainers} {
		status.Conditions = append(status.Conditions, corev1.PodCondition{Type: of, Status: corev1.ConditionFalse})
	}
	return status
}

func newScheme(t testing.TB) *runtime.Scheme {
	t.Helper()
	s, err := scheme.New()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func types(t testing.TB) managedfields.TypeConverter {
	t.Helper()
	s := newScheme(t)
	_, config := openapi.Configs(s)
	types, err := typedfields.New(s, config, typedfields.Kinds{Stored: []schema.GroupVersionKind{pods},
		Asked: []schema.GroupVersionKind{reviews}})
	if err != nil {
		t.Fatal(err)
	}
	return types
}

// libraryTypes are those that the library makes of the same definitions.
func libraryTypes(t testing.TB) managedfields.TypeConverter {
	t.Helper()
	_, config := openapi.Configs(newScheme(t))
	definitions, err := builder3.BuildOpenAPIDefinitionsForResources(config,
		openapiutil.GetCanonicalTypeName(&corev1.Pod{}))
	if err != nil {
		t.Fatal(err)
	}
	types, err := managedfields.NewTypeConverter(definitions, false)
	if err != nil {
		t.Fatal(err)
	}
	return types
}

func managerOf(
	t testing.TB, types managedfields.TypeConverter, kind schema.GroupVersionKind, subresource string,
) *managedfields.FieldManager {
	t.Helper()
	s := newScheme(t)
	hub := schema.GroupVersion{Group: kind.Group, Version: runtime.APIVersionInternal}
	m, err := managedfields.NewDefaultFieldManager(types, runtime.UnsafeObjectConvertor(s), s, s, kind, hub,
		subresource,
		nil)
	if err != nil {
		t.Fatal(err)
	}
	return m
}
