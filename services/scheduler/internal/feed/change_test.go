package feed

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"keelson.dev/services/scheduler/internal/cycle"
	"keelson.dev/services/scheduler/internal/groups"
)

// Changes reach a Cycle unaltered.
var _ Cluster = (*cycle.Cycle)(nil)

// listener records its calls.
type listener struct{ heard []string }

func (l *listener) hear(what, of string) { l.heard = append(l.heard, what+" "+of) }

func (l *listener) SetNode(n *corev1.Node)   { l.hear("SetNode", n.Name) }
func (l *listener) RemoveNode(name string)   { l.hear("RemoveNode", name) }
func (l *listener) RemovePod(p *corev1.Pod)  { l.hear("RemovePod", p.Name) }
func (l *listener) SetGroup(g groups.Group)  { l.hear("SetGroup "+g.Kind, g.Name.Name) }
func (l *listener) RemoveClass(name string)  { l.hear("RemoveClass", name) }
func (l *listener) RemoveDriver(name string) { l.hear("RemoveDriver", name) }
func (l *listener) RemoveGroup(name groups.Name) {
	l.hear("RemoveGroup "+name.Kind, name.Name)
}
func (l *listener) SetPod(p *corev1.Pod, now time.Time) {
	l.hear(fmt.Sprint("SetPod at ", now.Unix()), p.Name)
}
func (l *listener) SetPodGroup(g *schedulingv1beta1.PodGroup, now time.Time) {
	l.hear(fmt.Sprint("SetPodGroup at ", now.Unix()), g.Name)
}
func (l *listener) RemovePodGroup(g *schedulingv1beta1.PodGroup) { l.hear("RemovePodGroup", g.Name) }
func (l *listener) SetNamespace(name string, of labels.Set) {
	l.hear(fmt.Sprintf("SetNamespace with %d labels", len(of)), name)
}
func (l *listener) SetBudget(b *policyv1.PodDisruptionBudget)    { l.hear("SetBudget", b.Name) }
func (l *listener) RemoveBudget(b *policyv1.PodDisruptionBudget) { l.hear("RemoveBudget", b.Name) }
func (l *listener) SetDeviceClaim(c *resourcev1.ResourceClaim)   { l.hear("SetDeviceClaim", c.Name) }
func (l *listener) RemoveDeviceClaim(c *resourcev1.ResourceClaim) {
	l.hear("RemoveDeviceClaim", c.Name)
}
func (l *listener) SetClaim(c *corev1.PersistentVolumeClaim)      { l.hear("SetClaim", c.Name) }
func (l *listener) RemoveClaim(c *corev1.PersistentVolumeClaim)   { l.hear("RemoveClaim", c.Name) }
func (l *listener) SetVolume(v *corev1.PersistentVolume)          { l.hear("SetVolume", v.Name) }
func (l *listener) RemoveVolume(v *corev1.PersistentVolume)       { l.hear("RemoveVolume", v.Name) }
func (l *listener) SetClass(c *storagev1.StorageClass)            { l.hear("SetClass", c.Name) }
func (l *listener) SetVolumeLimits(n *storagev1.CSINode)          { l.hear("SetVolumeLimits", n.Name) }
func (l *listener) RemoveVolumeLimits(node string)                { l.hear("RemoveVolumeLimits", node) }
func (l *listener) SetAttachment(a *storagev1.VolumeAttachment)   { l.hear("SetAttachment", a.Name) }
func (l *listener) RemoveAttachment(name string)                  { l.hear("RemoveAttachment", name) }
func (l *listener) SetDriver(d *storagev1.CSIDriver)              { l.hear("SetDriver", d.Name) }
func (l *listener) SetStorage(s *storagev1.CSIStorageCapacity)    { l.hear("SetStorage", s.Name) }
func (l *listener) RemoveStorage(s *storagev1.CSIStorageCapacity) { l.hear("RemoveStorage", s.Name) }

// The calls of a Cluster for an object x with one label that is there at the time 7, and gone at the time 9.
func TestChangesOfEachKind(t *testing.T) {
	want := map[reflect.Type][]string{
		reflect.TypeFor[*corev1.Node]():                  {"SetNode x", "RemoveNode x"},
		reflect.TypeFor[*corev1.Pod]():                   {"SetPod at 7 x", "RemovePod x"},
		reflect.TypeFor[*corev1.PersistentVolumeClaim](): {"SetClaim x", "RemoveClaim x"},
		reflect.TypeFor[*corev1.PersistentVolume]():      {"SetVolume x", "RemoveVolume x"},
		reflect.TypeFor[*storagev1.StorageClass]():       {"SetClass x", "RemoveClass x"},
		reflect.TypeFor[*storagev1.CSINode]():            {"SetVolumeLimits x", "RemoveVolumeLimits x"},
		reflect.TypeFor[*storagev1.VolumeAttachment]():   {"SetAttachment x", "RemoveAttachment x"},
		reflect.TypeFor[*storagev1.CSIDriver]():          {"SetDriver x", "RemoveDriver x"},
		reflect.TypeFor[*storagev1.CSIStorageCapacity](): {"SetStorage x", "RemoveStorage x"},
		reflect.TypeFor[*corev1.Service]():               {"SetGroup Service x", "RemoveGroup Service x"},
		reflect.TypeFor[*corev1.ReplicationController](): {"SetGroup ReplicationController x",
			"RemoveGroup ReplicationController x"},
		reflect.TypeFor[*appsv1.ReplicaSet]():  {"SetGroup ReplicaSet x", "RemoveGroup ReplicaSet x"},
		reflect.TypeFor[*appsv1.StatefulSet](): {"SetGroup StatefulSet x", "RemoveGroup StatefulSet x"},
		reflect.TypeFor[*corev1.Namespace](): {"SetNamespace with 1 labels x",
			"SetNamespace with 0 labels x"},
		reflect.TypeFor[*policyv1.PodDisruptionBudget](): {"SetBudget x", "RemoveBudget x"},
		reflect.TypeFor[*resourcev1.ResourceClaim]():     {"SetDeviceClaim x", "RemoveDeviceClaim x"},
		reflect.TypeFor[*schedulingv1beta1.PodGroup]():   {"SetPodGroup at 7 x", "RemovePodGroup x"},
	}
	for _, o := range Kinds() {
		named := o.(metav1.Object)
		named.SetName("x")
		named.SetLabels(map[string]string{"a": "b"})
		var l listener
		for i, of := range []func(runtime.Object) (Change, bool){Set, Removed} {
			if change, ok := of(o); ok {
				change.Apply(&l, time.Unix(int64(7+2*i), 0))
			}
		}
		kind := reflect.TypeOf(o)
		if !slices.Equal(l.heard, want[kind]) {
			t.Errorf("of a %s is told %q, want %q", kind, l.heard, want[kind])
		}
		delete(want, kind)
	}
	if len(want) > 0 {
		t.Errorf("kinds that are not read: %v", want)
	}
	if _, ok := Set(&corev1.ConfigMap{}); ok {
		t.Error("a ConfigMap is a change")
	}
	if _, ok := Removed(&corev1.ConfigMap{}); ok {
		t.Error("a ConfigMap that is gone is a change")
	}
}
