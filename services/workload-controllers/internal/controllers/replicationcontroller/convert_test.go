package replicationcontroller

import (
	"math/rand" //nolint:depguard // the library's fuzzer takes a source of this package
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/randfill"
)

// What is read of a ReplicationController and written back is what it was, whatever it says, and nothing that a
// ReplicaSet has is left out: a field that comes to the API later has to be thought of.
func TestConversion(t *testing.T) {
	filler := randfill.New().RandSource(rand.NewSource(1)).NilChance(.2).NumElements(0, 3)
	for range 200 {
		rc := &corev1.ReplicationController{}
		filler.Fill(&rc.ObjectMeta)
		filler.Fill(&rc.Status)
		filler.Fill(&rc.Spec.Replicas)
		filler.Fill(&rc.Spec.Selector)
		filler.Fill(&rc.Spec.MinReadySeconds)
		rc.Spec.Template = &corev1.PodTemplateSpec{}
		filler.Fill(&rc.Spec.Template.ObjectMeta)
		before := rc.DeepCopy()
		set := replicaSetOf(rc)
		if got := statusOf(set.Status); !equality.Semantic.DeepEqual(got, rc.Status) {
			t.Fatalf("the status %+v came back as %+v", rc.Status, got)
		}
		if !equality.Semantic.DeepEqual(set.ObjectMeta, rc.ObjectMeta) ||
			!equality.Semantic.DeepEqual(set.Spec.Template, *rc.Spec.Template) ||
			!reflect.DeepEqual(set.Spec.Replicas, rc.Spec.Replicas) ||
			set.Spec.MinReadySeconds != rc.Spec.MinReadySeconds ||
			!equality.Semantic.DeepEqual(set.Spec.Selector.MatchLabels, rc.Spec.Selector) {
			t.Fatalf("%+v is read as %+v", rc, set)
		}
		if !equality.Semantic.DeepEqual(before, rc) {
			t.Fatal("what was given changed")
		}
	}
	for kind, fields := range map[reflect.Type]int{
		reflect.TypeFor[corev1.ReplicationControllerSpec]():      4,
		reflect.TypeFor[corev1.ReplicationControllerStatus]():    6,
		reflect.TypeFor[corev1.ReplicationControllerCondition](): 5,
	} {
		if kind.NumField() != fields {
			t.Errorf("%s has %d fields, of which %d are converted", kind, kind.NumField(), fields)
		}
	}
}

// Only a template is asked for; what the apiserver refuses ends no process.
func TestWithoutTemplate(t *testing.T) {
	if set := replicaSetOf(&corev1.ReplicationController{}); len(set.Spec.Template.Spec.Containers) != 0 {
		t.Errorf("%+v", set)
	}
}
