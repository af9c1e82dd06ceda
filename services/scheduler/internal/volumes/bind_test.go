package volumes_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/services/scheduler/internal/rulestest"
	"keelson.dev/services/scheduler/internal/volumes"
)

// What claims get on node n, and why the node is refused. A volume is to be made where it says so.
func TestPlan(t *testing.T) {
	unmade := "kubernetes.io/no-provisioner"
	one := rulestest.Volume("v", "1Gi")
	for name, test := range map[string]struct {
		provisioner string
		claims      []*claim
		volumes     []*volume
		want        string
	}{
		"one that is there": {unmade, []*claim{rulestest.Claim("a")}, []*volume{one}, "a:v"},
		"none is there":     {unmade, []*claim{rulestest.Claim("a")}, nil, volumes.NoVolume},
		"one for two": {unmade, []*claim{rulestest.Claim("a"), rulestest.Claim("b")},
			[]*volume{one}, "a:v" + volumes.NoVolume},
		"one for two, the other is made": {"x", []*claim{rulestest.Claim("a"), rulestest.Claim("b")},
			[]*volume{one}, "a:vb:made"},
		"one of this node": {unmade, []*claim{rulestest.Claim("a")},
			[]*volume{rulestest.Volume("v", "1Gi", rulestest.OfHost("n"))}, "a:v"},
		"one of another node": {unmade, []*claim{rulestest.Claim("a")},
			[]*volume{rulestest.Volume("v", "1Gi", rulestest.OfHost("m"))}, volumes.NoVolume},
		"the smaller, of any node": {unmade, []*claim{rulestest.Claim("a")},
			[]*volume{rulestest.Volume("w", "2Gi", rulestest.OfHost("n")), one}, "a:v"},
		"the smaller, of this node": {unmade, []*claim{rulestest.Claim("a")},
			[]*volume{rulestest.Volume("w", "2Gi"), rulestest.Volume("v", "1Gi", rulestest.OfHost("n"))}, "a:v"},
		"to be made for this node": {"x", []*claim{rulestest.Claim("a", selected("n"))}, nil, "a:made"},
		"to be made for another":   {"x", []*claim{rulestest.Claim("a", selected("m"))}, nil, volumes.NoVolume},
		"has one of any node":      {unmade, []*claim{rulestest.Claim("a", bound("v"))}, []*volume{one}, ""},
		"has one of this node": {unmade, []*claim{rulestest.Claim("a", bound("v"))},
			[]*volume{rulestest.Volume("v", "1Gi", rulestest.OfHost("n"))}, ""},
		"SAF-185: has one of another node": {unmade, []*claim{rulestest.Claim("a", bound("v"))},
			[]*volume{rulestest.Volume("v", "1Gi", rulestest.OfHost("m"))}, volumes.Conflict},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBook(test.claims...)
			class := rulestest.WaitClass()
			class.Provisioner = test.provisioner
			b.SetClass(class)
			for _, v := range test.volumes {
				b.SetVolume(v)
			}
			p := rulestest.Pod("p")
			for _, c := range test.claims {
				rulestest.Claiming(c.Name)(p)
			}
			if got := says(b.Demand(p).Plan(rulestest.Node("n"), nil)); got != test.want {
				t.Errorf("the plan is %s, want %s", got, test.want)
			}
		})
	}
}

// says is a plan in words.
func says(p volumes.Plan) (text string) {
	for _, pick := range p.Picks {
		volume := "made"
		if pick.Volume != nil {
			volume = pick.Volume.Name
		}
		text += pick.Need.Claim.Name + ":" + volume
	}
	for reason, is := range map[string]bool{volumes.Conflict: p.Conflict, volumes.NoVolume: p.NoVolume,
		volumes.NoStorage: p.NoStorage} {
		if is {
			text += reason
		}
	}
	return text
}

// What becomes of a wait on node n for claim a, for which volume v was chosen, or one is made.
func TestCheck(t *testing.T) {
	set := func(change ...func(*claim)) func(*volumes.Book) {
		return func(b *volumes.Book) { b.SetClaim(rulestest.Claim("a", append(change, version("2"))...)) }
	}
	has := func(uid string, change ...func(*volume)) func(*volumes.Book) {
		return func(b *volumes.Book) {
			b.SetVolume(rulestest.Volume("v", "1Gi", append(change, reserved("a", uid), func(v *volume) {
				v.Status.Phase, v.ResourceVersion = corev1.VolumeBound, "2"
			})...))
		}
	}
	const deleted = `persistentvolumeclaim "a" has been deleted`
	const lost = `persistentvolume "v" is no longer reserved for persistentvolumeclaim "a"`
	gaveUp := func(node string) string {
		return `provisioning failed for persistentvolumeclaim "a": its annotation volume.kubernetes.io/selected-node is ` +
			`"` + node + `", it was "n"`
	}
	for name, test := range map[string]struct {
		there   bool
		happens []func(*volumes.Book)
		want    string
	}{
		"its node is written":     {false, []func(*volumes.Book){set(selected("n"))}, "false"},
		"its node is taken back":  {false, []func(*volumes.Book){set()}, gaveUp("")},
		"its node is another":     {false, []func(*volumes.Book){set(selected("m"))}, gaveUp("m")},
		"it got a volume":         {false, []func(*volumes.Book){has("a"), set(bound("v"))}, "true"},
		"the volume is not known": {false, []func(*volumes.Book){set(bound("v"))}, "false"},
		"the volume is not its":   {false, []func(*volumes.Book){has("b"), set(bound("v"))}, "false"},
		"its binding goes on": {false, []func(*volumes.Book){has("a"), set(bound("v"), func(c *claim) {
			c.Annotations = nil
		})}, "false"},
		"it got one of this node": {false,
			[]func(*volumes.Book){has("a", rulestest.OfHost("n")), set(bound("v"))}, "true"},
		"it got one of another node": {false, []func(*volumes.Book){has("a", rulestest.OfHost("m")), set(bound("v"))},
			`persistentvolume "v", which persistentvolumeclaim "a" got, cannot be used on node n`},
		"it is being deleted": {false,
			[]func(*volumes.Book){set(func(c *claim) { c.DeletionTimestamp = &metav1.Time{} })},
			deleted},
		"it is another of its name": {false, []func(*volumes.Book){set(func(c *claim) { c.UID = "new" })}, deleted},
		"it is gone": {false, []func(*volumes.Book){func(b *volumes.Book) { b.RemoveClaim(rulestest.Claim("a")) }},
			deleted},
		"the volume is reserved":             {true, []func(*volumes.Book){has("a")}, "false"},
		"the volume is reserved for another": {true, []func(*volumes.Book){has("b")}, lost},
		"the volume is reserved for none":    {true, nil, lost},
		"the volume is another of its name": {true, []func(*volumes.Book){has("a", func(v *volume) { v.UID = "new" })},
			lost},
		"the volume is gone": {true, []func(*volumes.Book){func(b *volumes.Book) {
			b.RemoveVolume(rulestest.Volume("v", "1Gi"))
		}}, lost},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBook(rulestest.Claim("a"))
			if test.there {
				b.SetVolume(rulestest.Volume("v", "1Gi"))
			}
			p := rulestest.Pod("p", rulestest.Claiming("a"))
			b.Wait(p)
			if steps := b.Assume(p, rulestest.Node("n")); len(steps) != 1 || (steps[0].Volume != nil) != test.there {
				t.Fatalf("the steps are %+v", steps)
			}
			for _, happens := range test.happens {
				happens(b)
			}
			done, err := b.Check(p, rulestest.Node("n"))
			got := fmt.Sprint(done)
			if err != nil {
				got = err.Error()
			}
			if got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// What is chosen for one Pod is kept from others until it is given back by the last Pod that has the claim.
func TestRelease(t *testing.T) {
	b := newBook(rulestest.Claim("a"), rulestest.Claim("b"))
	b.SetVolume(rulestest.Volume("v", "1Gi"))
	p, q := rulestest.Pod("p", rulestest.Claiming("a")), rulestest.Pod("q", rulestest.Claiming("a"))
	other := func(step, want string) {
		t.Helper()
		got := says(b.Demand(rulestest.Pod("r", rulestest.Claiming("b"))).Plan(rulestest.Node("n"), nil))
		if got != want {
			t.Errorf("%s: another claim gets %s, want %s", step, got, want)
		}
	}
	b.Wait(p)
	b.Wait(q)
	other("at first", "b:v")
	b.Assume(p, rulestest.Node("n"))
	b.Assume(q, rulestest.Node("n"))
	other("two Pods", "b:made")
	b.Release(p.UID)
	other("one Pod", "b:made")
	b.Forget(q.UID)
	other("none", "b:v")
}
