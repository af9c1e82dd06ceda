package persistentvolume

import (
	"fmt"
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func anyVolume(*corev1.PersistentVolume) bool { return true }

// SET-024: a claim gets the smallest of the free volumes that suit.
func TestTake(t *testing.T) {
	labelled := func(v *corev1.PersistentVolume) { v.Labels = map[string]string{"disk": "new"} }
	wantsNew := func(c *corev1.PersistentVolumeClaim) {
		c.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"disk": "new"}}
	}
	many := func(v *corev1.PersistentVolume) {
		v.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
	}
	gold := func(v *corev1.PersistentVolume) { v.Spec.VolumeAttributesClassName = ptr.To("gold") }
	for _, row := range []struct {
		name    string
		claim   *corev1.PersistentVolumeClaim
		volumes []*corev1.PersistentVolume
		want    string
	}{
		{"none", claim("a"), nil, ""},
		{"the smallest", claim("a"), []*corev1.PersistentVolume{volume("x", sized("9Gi")), volume("y", sized("6Gi")),
			volume("z", sized("8Gi"))}, "y"},
		{"just enough", claim("a"), []*corev1.PersistentVolume{volume("x"), volume("y", sized("5Gi"))}, "y"},
		{"a byte too small", claim("a"), []*corev1.PersistentVolume{volume("x", sized("5368709119"))}, ""},
		{"as large: the first by name", claim("a"), []*corev1.PersistentVolume{volume("y"), volume("x")}, "x"},
		{"another class", claim("a"), []*corev1.PersistentVolume{volume("x", class("slow"))}, ""},
		{"no class", claim("a", noClass), []*corev1.PersistentVolume{volume("x", class("")), volume("y")}, "x"},
		{"a device", claim("a"), []*corev1.PersistentVolume{volume("x", block)}, ""},
		{"other attributes", claim("a"), []*corev1.PersistentVolume{volume("x", gold)}, ""},
		{"other access, a larger one suits", claim("a"), []*corev1.PersistentVolume{volume("x", sized("6Gi"), many),
			volume("y")}, "y"},
		{"some of the access", claim("a", modes(corev1.ReadWriteOnce, corev1.ReadWriteMany)),
			[]*corev1.PersistentVolume{volume("x")}, ""},
		{"by labels, a larger one", claim("a", wantsNew), []*corev1.PersistentVolume{volume("x", sized("6Gi")),
			volume("y", labelled)}, "y"},
		{"kept for somebody", claim("a"), []*corev1.PersistentVolume{volume("x", kept("b", ""))}, ""},
		{"released", claim("a"), []*corev1.PersistentVolume{volume("x", phase("Released"))}, ""},
		{"not looked at yet", claim("a"), []*corev1.PersistentVolume{volume("x", phase("Pending"))}, ""},
		{"on its way out", claim("a"), []*corev1.PersistentVolume{volume("x", ending)}, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			f := newFree()
			for _, v := range row.volumes {
				f.put(v)
			}
			got := ""
			if found, _ := f.take(row.claim, anyVolume); found != nil {
				got = found.Name
			}
			if got != row.want {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
}

// Two passes never get the same volume, and the later pass looks again.
func TestTakenOnce(t *testing.T) {
	f, v := newFree(), volume("v")
	f.put(v)
	if found, _ := f.take(claim("a"), anyVolume); found != v {
		t.Fatal("nothing was found")
	}
	f.put(v) // An event on the way.
	if found, contested := f.take(claim("b"), anyVolume); found != nil || !contested {
		t.Errorf("taken twice: %v, contested %t", found, contested)
	}
	if _, contested := f.take(claim("b", ofClass("slow")), anyVolume); contested {
		t.Error("a claim that the volume does not suit is told to look again")
	}
	f.settle("v", func() *corev1.PersistentVolume { return v })
	if found, _ := f.take(claim("b"), func(*corev1.PersistentVolume) bool { return false }); found != nil {
		t.Error("found what may not be had")
	}
	if found, _ := f.take(claim("b"), anyVolume); found != v {
		t.Error("what was given back is not found")
	}
	f.settle("v", func() *corev1.PersistentVolume { return nil })
	if found, contested := f.take(claim("a"), anyVolume); found != nil || contested {
		t.Error("what was given away is found")
	}
}

// The index finds what a search of all volumes finds, whatever came and went.
func TestIndexAgainstAllVolumes(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		f, all := newFree(), map[string]*corev1.PersistentVolume{}
		for range 60 {
			name := fmt.Sprint("v", r.IntN(12))
			switch r.IntN(4) {
			case 0:
				delete(all, name)
				f.remove(name)
			default:
				v := volume(name, sized(fmt.Sprint(1+r.IntN(9), "Gi")), class([]string{"fast", "slow"}[r.IntN(2)]),
					phase([]corev1.PersistentVolumePhase{"Available", "Available", "Bound"}[r.IntN(3)]))
				all[name] = v
				f.put(v)
			}
			wanted := claim("a", ofClass([]string{"fast", "slow"}[r.IntN(2)]))
			var smallest *corev1.PersistentVolume
			for _, v := range all {
				if isFree(v) && suits(v, wanted) && (smallest == nil || bySize(v, smallest) < 0) {
					smallest = v
				}
			}
			found, _ := f.take(wanted, anyVolume)
			if found != smallest {
				t.Fatalf("seed %d: found %v, want %v", seed, found, smallest)
			}
			if found != nil {
				f.settle(found.Name, func() *corev1.PersistentVolume { return found })
			}
		}
	}
}
