package volumes_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/services/scheduler/internal/rulestest"
	"keelson.dev/services/scheduler/internal/volumes"
)

type (
	claim  = corev1.PersistentVolumeClaim
	volume = corev1.PersistentVolume
)

// newBook returns a Book that knows WaitClass and claims.
func newBook(claims ...*claim) *volumes.Book {
	b := volumes.New()
	b.SetClass(rulestest.WaitClass())
	for _, c := range claims {
		b.SetClaim(c)
	}
	return b
}

// bound says of a claim that it has a volume.
func bound(name string) func(*claim) {
	return func(c *claim) {
		c.Spec.VolumeName, c.Status.Phase = name, corev1.ClaimBound
		c.Annotations = map[string]string{volumes.BindCompleted: "yes"}
	}
}

// selected says for which node the volume of a claim is to be made.
func selected(node string) func(*claim) {
	return func(c *claim) { c.Annotations = map[string]string{volumes.SelectedNode: node} }
}

func version(v string) func(*claim) { return func(c *claim) { c.ResourceVersion = v } }

func ofClass(name string) func(*claim) { return func(c *claim) { c.Spec.StorageClassName = &name } }

// made gives the Pod p a volume whose claim p-data is made for it alone.
func made(p *corev1.Pod) {
	p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "data", VolumeSource: corev1.VolumeSource{
		Ephemeral: &corev1.EphemeralVolumeSource{}}})
}

func ownedBy(uid string) func(*claim) {
	return func(c *claim) {
		c.OwnerReferences = []metav1.OwnerReference{{UID: rulestest.Pod(uid).UID, Controller: ptr.To(true)}}
	}
}

// What keeps a Pod from every node.
func TestBlocked(t *testing.T) {
	uses, own := rulestest.Claiming("data"), made
	const unbound = "pod has unbound immediate PersistentVolumeClaims"
	for name, test := range map[string]struct {
		claims  []*claim
		pod     func(*corev1.Pod)
		want    string
		counted bool
	}{
		"no claim of the name": {nil, uses, `persistentvolumeclaim "data" not found`, false},
		"a claim of its own, not made yet": {nil, own,
			`waiting for ephemeral volume controller to create the persistentvolumeclaim "p-data"`, false},
		"a claim of its own": {[]*claim{rulestest.Claim("p-data", ownedBy("p"))}, own, "", false},
		"another's claim of the name": {[]*claim{rulestest.Claim("p-data", ownedBy("q"))}, own,
			"PVC default/p-data was not created for pod default/p (pod is not owner)", false},
		"another's claim, which it names": {[]*claim{rulestest.Claim("data", ownedBy("q"))}, uses, "", false},
		"a claim that lost its volume": {[]*claim{rulestest.Claim("data", bound("v"), func(c *claim) {
			c.Status.Phase = corev1.ClaimLost
		})}, uses, `persistentvolumeclaim "data" bound to non-existent persistentvolume "v"`, false},
		"a claim that is being deleted": {[]*claim{rulestest.Claim("data", func(c *claim) {
			c.DeletionTimestamp = &metav1.Time{}
		})}, uses, `persistentvolumeclaim "data" is being deleted`, false},
		"a claim that waits for its Pod": {[]*claim{rulestest.Claim("data")}, uses, "", false},
		"a claim that waits for no Pod":  {[]*claim{rulestest.Claim("data", ofClass("now"))}, uses, unbound, false},
		"a claim of a class that is not": {[]*claim{rulestest.Claim("data", ofClass("gone"))}, uses, unbound, false},
		"a claim whose binding goes on": {[]*claim{rulestest.Claim("data", bound("v"), func(c *claim) {
			c.Annotations = nil
		})}, uses, unbound, false},
		"a claim with its volume": {[]*claim{rulestest.Claim("data", bound("v"))}, uses, "", false},
		"a claim whose volume is gone": {[]*claim{rulestest.Claim("data", bound("gone"))}, uses,
			"node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)", true},
		"a class by its annotation": {[]*claim{rulestest.Claim("data", ofClass("now"), func(c *claim) {
			c.Annotations = map[string]string{corev1.BetaStorageClassAnnotation: "wait"}
		})}, uses, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBook(test.claims...)
			b.SetClass(&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "now"}, Provisioner: "p"})
			b.SetVolume(rulestest.Volume("v", "1Gi"))
			d := b.Demand(rulestest.Pod("p", test.pod))
			if d.Blocked != test.want || d.Counted != test.counted {
				t.Errorf("%q, counted %t, want %q, %t", d.Blocked, d.Counted, test.want, test.counted)
			}
		})
	}
	if d := newBook().Demand(rulestest.Pod("p")); d != nil {
		t.Errorf("a Pod without claims demands %+v", d)
	}
}

func reserved(name, uid string) func(*volume) {
	return func(v *volume) {
		v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "default", Name: name, UID: rulestest.Pod(uid).UID}
	}
}

// Which volumes that are there a claim of 1Gi may have, the best first; with "+", one may be made.
func TestChoice(t *testing.T) {
	modes := func(m ...corev1.PersistentVolumeAccessMode) func(*claim) {
		return func(c *claim) { c.Spec.AccessModes = m }
	}
	block := ptr.To(corev1.PersistentVolumeBlock)
	gold := func(c *claim) {
		c.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}}
	}
	one := func(change ...func(*volume)) []*volume { return []*volume{rulestest.Volume("v", "1Gi", change...)} }
	meant := func(v *volume) { v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "default", Name: "data"} }
	for name, test := range map[string]struct {
		claim   func(*claim)
		volumes []*volume
		want    string
	}{
		"none":        {nil, nil, "+"},
		"as large":    {nil, one(), "v+"},
		"a byte less": {nil, []*volume{rulestest.Volume("v", "1073741823")}, "+"},
		"the smallest first": {nil, []*volume{rulestest.Volume("c", "3Gi"), rulestest.Volume("b", "2Gi"),
			rulestest.Volume("a", "4Gi")}, "b c a+"},
		"of one size, by name": {nil, []*volume{rulestest.Volume("b", "2Gi"), rulestest.Volume("a", "2Gi")}, "a b+"},
		"one mode of two":      {modes(corev1.ReadWriteOnce, corev1.ReadOnlyMany), one(), "+"},
		"no mode":              {modes(), one(), "v+"},
		"a block volume":       {nil, one(func(v *volume) { v.Spec.VolumeMode = block }), "+"},
		"a block claim":        {func(c *claim) { c.Spec.VolumeMode = block }, one(), "+"},
		"both block": {func(c *claim) { c.Spec.VolumeMode = block },
			one(func(v *volume) { v.Spec.VolumeMode = block }), "v+"},
		"selected": {gold,
			one(func(v *volume) { v.Labels = map[string]string{"tier": "gold"} }), "v+"},
		"not selected":     {gold, one(), "+"},
		"of another class": {nil, one(func(v *volume) { v.Spec.StorageClassName = "other" }), "+"},
		"released, not yet free": {nil,
			one(func(v *volume) { v.Status.Phase = corev1.VolumeReleased }), "+"},
		"being deleted":                      {nil, one(func(v *volume) { v.DeletionTimestamp = &metav1.Time{} }), "+"},
		"meant for it":                       {nil, append(one(meant), rulestest.Volume("a", "1Gi")), "v"},
		"meant for it, though not selected":  {gold, one(meant), "v"},
		"meant for it, by UID":               {nil, one(reserved("data", "data")), "v"},
		"meant for an older one of its name": {nil, one(reserved("data", "older")), "+"},
		"meant for it, too small":            {nil, []*volume{rulestest.Volume("v", "1Mi", meant)}, "+"},
		"meant for another":                  {nil, one(reserved("other", "other")), "+"},
		"meant for its name in another namespace": {nil, one(meant, func(v *volume) {
			v.Spec.ClaimRef.Namespace = "other"
		}), "+"},
		"a node was selected":               {selected("n"), one(), "@n+"},
		"meant for it, a node was selected": {selected("n"), one(meant), "v"},
	} {
		t.Run(name, func(t *testing.T) {
			c := rulestest.Claim("data")
			if test.claim != nil {
				test.claim(c)
			}
			b := newBook(c)
			for _, v := range test.volumes {
				b.SetVolume(v)
			}
			need := b.Demand(rulestest.Pod("p", rulestest.Claiming("data"))).Needs[0]
			var names []string
			for _, v := range need.Choice {
				names = append(names, v.Name)
			}
			got := strings.Join(names, " ")
			if need.Node != "" {
				got += "@" + need.Node
			}
			if need.Provision {
				got += "+"
			}
			if got != test.want {
				t.Errorf("it may have %q, want %q", got, test.want)
			}
		})
	}
}

// Claims choose in this order: those with a volume, those for which a node was chosen, then the smallest.
func TestTurns(t *testing.T) {
	sized := func(size string) func(*claim) {
		return func(c *claim) { c.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse(size) }
	}
	b := newBook(rulestest.Claim("large", sized("2Gi")), rulestest.Claim("small"), rulestest.Claim("for-n",
		sized("9Gi"), selected("n")), rulestest.Claim("has", sized("10Gi"), bound("v")))
	b.SetVolume(rulestest.Volume("v", "10Gi"))
	d := b.Demand(rulestest.Pod("p", rulestest.Claiming("large", "small", "large", "for-n", "has")))
	var got []string
	for _, n := range d.Needs {
		got = append(got, n.Claim.Name)
	}
	if want := []string{"has", "for-n", "small", "large"}; !slices.Equal(got, want) || !d.Unbound() {
		t.Errorf("the order is %v, want %v", got, want)
	}
	if d := b.Demand(rulestest.Pod("p", rulestest.Claiming("has"))); d.Unbound() {
		t.Error("a claim that has its volume is unbound")
	}
}

// Pods are alike to nodes if their claims are, whatever the names of these.
func TestKey(t *testing.T) {
	key := func(b *volumes.Book, name string) string {
		return string(b.Demand(rulestest.Pod("p", rulestest.Claiming(name))).Key(nil))
	}
	smaller := func(c *claim) {
		c.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Mi")}
	}
	for name, test := range map[string]struct {
		other func(*claim)
		free  bool
		alike bool
	}{
		"alike":                              {func(*claim) {}, false, true},
		"of another size, where none counts": {smaller, false, true},
		"of another size, among volumes":     {smaller, true, false},
		"for a node":                         {selected("n"), false, false},
		"with a volume of no node":           {bound("any"), false, false},
		"whose volume is of a node":          {bound("of-n"), false, false},
		"of no class":                        {ofClass(""), false, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBook(rulestest.Claim("a"), rulestest.Claim("b", test.other))
			taken := func(v *volume) { v.Status.Phase = corev1.VolumeBound }
			b.SetVolume(rulestest.Volume("any", "1Gi", taken))
			b.SetVolume(rulestest.Volume("of-n", "1Gi", taken, rulestest.OfHost("n")))
			if test.free {
				b.SetVolume(rulestest.Volume("v", "1Gi"))
			}
			if got := key(b, "a") == key(b, "b"); got != test.alike {
				t.Errorf("alike: %t, want %t", got, test.alike)
			}
		})
	}
}
