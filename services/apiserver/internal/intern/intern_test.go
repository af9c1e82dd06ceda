package intern

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/randfill"
)

func requirements(cpu string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{
		Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse("16Mi")},
		Limits:   corev1.ResourceList{"cpu": resource.MustParse("2")},
	}
}

// pod is one of a template, as it is decoded: with memory of its own for all.
func pod(name, cpu string) *corev1.Pod {
	seconds := int64(300)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: string([]byte("shop")),
			Labels:          map[string]string{"app": "web"},
			OwnerReferences: []metav1.OwnerReference{{UID: "u", Name: "web"}},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m", Time: &metav1.Time{Time: time.Unix(1, 0)},
				FieldsV1: metav1.NewFieldsV1(`{"f:spec":{}}`)}}},
		Spec: corev1.PodSpec{
			SecurityContext: &corev1.PodSecurityContext{RunAsUser: &seconds},
			Volumes:         []corev1.Volume{{Name: "v"}},
			NodeSelector:    map[string]string{"disk": "fast"},
			Tolerations:     []corev1.Toleration{{Key: "a"}, {Key: "b", TolerationSeconds: &seconds}},
			InitContainers:  []corev1.Container{{Name: "i"}},
			Containers: []corev1.Container{{Name: "c", Image: "i", Resources: requirements(cpu),
				VolumeMounts: []corev1.VolumeMount{{Name: "v"}}}},
		},
		Status: corev1.PodStatus{
			Conditions: []corev1.PodCondition{{Type: "Ready", LastTransitionTime: metav1.Unix(2, 0)}},
			ContainerStatuses: []corev1.ContainerStatus{{
				Resources: &corev1.ResourceRequirements{Requests: requirements(cpu).Requests}}},
		},
	}
}

// small is a size of objects that share all that they have alike.
const small = 16_384

// memory is where the parts lie that Pods may share, by name.
func memory(p *corev1.Pod) map[string]uintptr {
	at := func(v any) uintptr { return reflect.ValueOf(v).Pointer() }
	c := p.Spec.Containers[0]
	return map[string]uintptr{
		"labels": at(p.Labels), "fields": at(p.ManagedFields[0].FieldsV1), "node selector": at(p.Spec.NodeSelector),
		"tolerations": at(p.Spec.Tolerations), "requests": at(c.Resources.Requests), "limits": at(c.Resources.Limits),
		"actual requests": at(p.Status.ContainerStatuses[0].Resources.Requests), "owners": at(p.OwnerReferences),
		"managers": at(p.ManagedFields), "init containers": at(p.Spec.InitContainers),
		"containers": at(p.Spec.Containers), "volumes": at(p.Spec.Volumes),
		"security context": at(p.Spec.SecurityContext), "conditions": at(p.Status.Conditions),
	}
}

// Pods of one template share what they have alike, and no Pod has what another one has instead.
func TestPodsOfOneTemplateShare(t *testing.T) {
	pool := New()
	first, second, larger := pod("a", "100m"), pod("b", "100m"), pod("c", "101m")
	for _, p := range []*corev1.Pod{first, second, larger} {
		before := p.DeepCopy()
		pool.Object(p, small)
		if !equality.Semantic.DeepEqual(before, p) {
			t.Errorf("pod %s is another one now: %+v, was %+v", p.Name, p, before)
		}
	}
	for part := range lieTwice(small) {
		t.Errorf("the %s of equal Pods lie twice in memory", part)
	}
	if memory(larger)["requests"] == memory(first)["requests"] {
		t.Error("a Pod that asks for more shares its requests")
	}
}

// What is remembered of a large Pod is little of it.
func TestLargePodsShareNoLists(t *testing.T) {
	want := map[string]bool{"owners": true, "managers": true, "init containers": true, "containers": true,
		"volumes": true, "security context": true, "conditions": true}
	if got := lieTwice(small + 1); !maps.Equal(got, want) {
		t.Errorf("of equal Pods these parts lie twice in memory: %v, want %v", got, want)
	}
}

// lieTwice names the parts of two equal Pods of a size that they do not share. Two parts of one Pod may come to take
// the same slot of a table: what counts is what is never shared.
func lieTwice(size int) map[string]bool {
	apart := map[string]int{}
	const pools = 4
	for range pools {
		pool, first, second := New(), pod("a", "100m"), pod("b", "100m")
		pool.Object(first, size)
		pool.Object(second, size)
		of := memory(second)
		for part, at := range memory(first) {
			if of[part] != at {
				apart[part]++
			}
		}
	}
	always := map[string]bool{}
	for part, times := range apart {
		if times == pools {
			always[part] = true
		}
	}
	return always
}

// Pods that differ in one field alone, which no hash looks at, keep it.
func TestPodsThatDifferInOneField(t *testing.T) {
	yes := true
	for name, change := range map[string]func(*corev1.Pod){
		"whether an owner controls": func(p *corev1.Pod) { p.OwnerReferences[0].Controller = &yes },
		"what a manager did":        func(p *corev1.Pod) { p.ManagedFields[0].Operation = "Apply" },
		"when a manager did it": func(p *corev1.Pod) {
			p.ManagedFields[0].Time.Time = time.Unix(1, 1)
		},
		"a variable of a container": func(p *corev1.Pod) {
			p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "SIZE"}}
		},
		"an argument of an init container": func(p *corev1.Pod) { p.Spec.InitContainers[0].Args = []string{"-v"} },
		"where a volume is mounted": func(p *corev1.Pod) {
			p.Spec.Containers[0].VolumeMounts[0].MountPath = "/srv"
		},
		"where a volume comes from": func(p *corev1.Pod) {
			p.Spec.Volumes[0].EmptyDir = &corev1.EmptyDirVolumeSource{}
		},
		"who may not be root":  func(p *corev1.Pod) { p.Spec.SecurityContext.RunAsNonRoot = &yes },
		"whether it is ready":  func(p *corev1.Pod) { p.Status.Conditions[0].Status = "True" },
		"why it is not ready":  func(p *corev1.Pod) { p.Status.Conditions[0].Message = "starting" },
		"what container it is": func(p *corev1.Pod) { p.Spec.Containers[0].Stdin = true },
	} {
		pool, one, other := New(), pod("a", "100m"), pod("b", "100m")
		change(other)
		for _, p := range []*corev1.Pod{one, other, pod("c", "100m")} {
			before := p.DeepCopy()
			pool.Object(p, small)
			if !reflect.DeepEqual(before, p) {
				t.Errorf("%s: pod %s is another one now: %+v, was %+v", name, p.Name, p, before)
			}
		}
	}
}

// Nodes of one size share it. Capacity and allocatable may come to take one slot of the table, by the seed of its hash:
// what counts is what is never shared.
func TestNodesOfOneSizeShare(t *testing.T) {
	const pools = 4
	apart := map[string]int{}
	for range pools {
		pool := New()
		nodes := make([]corev1.Node, 2)
		for i := range nodes {
			nodes[i].Status.Capacity = requirements("4").Requests
			nodes[i].Status.Allocatable = requirements("3").Requests
			pool.Object(&nodes[i], small)
		}
		for part, of := range map[string]func(*corev1.Node) corev1.ResourceList{
			"capacity":    func(n *corev1.Node) corev1.ResourceList { return n.Status.Capacity },
			"allocatable": func(n *corev1.Node) corev1.ResourceList { return n.Status.Allocatable },
		} {
			if a, b := of(&nodes[0]), of(&nodes[1]); reflect.ValueOf(a).Pointer() != reflect.ValueOf(b).Pointer() {
				apart[part]++
			}
		}
	}
	for part, times := range apart {
		if times == pools {
			t.Errorf("the %s of equal nodes lies twice in memory", part)
		}
	}
}

// An object says the same as before, whatever the Pool has seen and whoever uses it at the same time.
func TestObjectsStayWhatTheyAre(t *testing.T) {
	pool := New()
	var users sync.WaitGroup
	for worker := range 4 {
		users.Go(func() {
			fill := randfill.NewWithSeed(int64(worker)).NilChance(0.3).NumElements(0, 3).MaxDepth(12).Funcs(
				func(q *resource.Quantity, c randfill.Continue) { *q = *resource.NewMilliQuantity(c.Int63n(3), "") },
				func(s *string, c randfill.Continue) { *s = fmt.Sprint(c.Intn(3)) },
				func(f *metav1.FieldsV1, c randfill.Continue) { f.SetRawString(fmt.Sprint(c.Intn(3))) },
			)
			for i := range 500 {
				for _, o := range []runtime.Object{&corev1.Pod{}, &corev1.Node{}, &corev1.ConfigMap{}} {
					fill.Fill(o)
					before := o.DeepCopyObject()
					pool.Object(o, small)
					if !reflect.DeepEqual(before, o) {
						t.Errorf("object %d of worker %d changed:\n%+v\n%+v", i, worker, before, o)
						return
					}
				}
			}
		})
	}
	users.Wait()
}

// A list is not taken for another that it begins with, even where both come to one slot.
func TestListsOfOneSlot(t *testing.T) {
	var remembered table[[]string]
	same := func(a, b *string) bool { return *a == *b }
	for _, list := range [][]string{{"a"}, {"a", "b"}, {"a"}} {
		kept := shared(&remembered, list, func([]string) uint64 { return 0 }, same)
		if !slices.Equal(kept, list) {
			t.Errorf("%v has become %v", list, kept)
		}
	}
}

// Tolerations that differ in one field alone are two.
func TestTolerationsDiffer(t *testing.T) {
	short, long := int64(1), int64(2)
	all := []corev1.Toleration{{Key: "k"}, {Key: "k", Value: "v"}, {Key: "k", Operator: "Exists"},
		{Key: "k", Effect: "NoExecute"}, {Key: "k", TolerationSeconds: &short}, {Key: "k", TolerationSeconds: &long}}
	for i := range all {
		for j := range all {
			if got := sameToleration(all[i], all[j]); got != (i == j) {
				t.Errorf("%+v and %+v are alike: %t", all[i], all[j], got)
			}
		}
	}
	same := int64(1)
	if !sameToleration(all[4], corev1.Toleration{Key: "k", TolerationSeconds: &same}) {
		t.Error("equal seconds differ by where they lie")
	}
}

// Kinds that are served without types have nothing that could be shared, and damage nothing.
func TestUntypedObjects(t *testing.T) {
	o := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"a": "b"}}}}
	before := o.DeepCopy()
	New().Object(o, small)
	if !reflect.DeepEqual(o, before) {
		t.Errorf("%v, was %v", o, before)
	}
}

// What is remembered does not grow with what is seen: the memory of a Pool is its tables and one value for each slot.
func TestAPoolForgets(t *testing.T) {
	pool := New()
	first := requirements("1").Requests
	pool.Resources(first)
	for range 50 * slots {
		pool.Resources(corev1.ResourceList{"cpu": *resource.NewMilliQuantity(rand.Int64(), resource.DecimalSI)})
	}
	if again := pool.Resources(requirements("1").Requests); reflect.ValueOf(again).Pointer() == reflect.ValueOf(
		first).Pointer() {
		t.Error("a value that 50 others have followed in each slot is still remembered")
	}
}

func BenchmarkPod(b *testing.B) {
	pool, pods := New(), make([]*corev1.Pod, 1000)
	for i := range pods {
		pods[i] = pod(fmt.Sprint(i), "100m")
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		pool.Object(pods[i%len(pods)], small)
	}
}
