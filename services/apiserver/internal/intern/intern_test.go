package intern

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"sync"
	"testing"

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
			Labels:        map[string]string{"app": "web"},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{}}`)}}},
		Spec: corev1.PodSpec{
			NodeSelector: map[string]string{"disk": "fast"},
			Tolerations:  []corev1.Toleration{{Key: "a"}, {Key: "b", TolerationSeconds: &seconds}},
			Containers:   []corev1.Container{{Name: "c", Image: "i", Resources: requirements(cpu)}},
		},
		Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
			Resources: &corev1.ResourceRequirements{Requests: requirements(cpu).Requests}}}},
	}
}

// memory is where the parts lie that Pods may share, by name.
func memory(p *corev1.Pod) map[string]uintptr {
	at := func(v any) uintptr { return reflect.ValueOf(v).Pointer() }
	c := p.Spec.Containers[0]
	return map[string]uintptr{
		"labels": at(p.Labels), "fields": at(p.ManagedFields[0].FieldsV1), "node selector": at(p.Spec.NodeSelector),
		"tolerations": at(p.Spec.Tolerations), "requests": at(c.Resources.Requests), "limits": at(c.Resources.Limits),
		"actual requests": at(p.Status.ContainerStatuses[0].Resources.Requests),
	}
}

// Pods of one template share what they have alike, and no Pod has what another one has instead.
func TestPodsOfOneTemplateShare(t *testing.T) {
	pool := New()
	first, second, larger := pod("a", "100m"), pod("b", "100m"), pod("c", "101m")
	for _, p := range []*corev1.Pod{first, second, larger} {
		before := p.DeepCopy()
		pool.Object(p)
		if !equality.Semantic.DeepEqual(before, p) {
			t.Errorf("pod %s is another one now: %+v, was %+v", p.Name, p, before)
		}
	}
	of := memory(second)
	for part, at := range memory(first) {
		if of[part] != at {
			t.Errorf("the %s of equal Pods lie twice in memory", part)
		}
	}
	if of := memory(larger); of["requests"] == memory(first)["requests"] || of["labels"] != memory(first)["labels"] {
		t.Error("a Pod that asks for more shares its requests, or not its labels")
	}
}

func TestNodesOfOneSizeShare(t *testing.T) {
	pool := New()
	nodes := make([]corev1.Node, 2)
	for i := range nodes {
		nodes[i].Status.Capacity = requirements("4").Requests
		nodes[i].Status.Allocatable = requirements("3").Requests
		pool.Object(&nodes[i])
	}
	for part, of := range map[string]func(*corev1.Node) corev1.ResourceList{
		"capacity":    func(n *corev1.Node) corev1.ResourceList { return n.Status.Capacity },
		"allocatable": func(n *corev1.Node) corev1.ResourceList { return n.Status.Allocatable },
	} {
		if a, b := of(&nodes[0]), of(&nodes[1]); reflect.ValueOf(a).Pointer() != reflect.ValueOf(b).Pointer() {
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
					pool.Object(o)
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
	New().Object(o)
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
		pool.Object(pods[i%len(pods)])
	}
}
