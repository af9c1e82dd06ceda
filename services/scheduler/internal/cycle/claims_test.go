package cycle_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/scheduler/internal/cycle"
	"keelson.dev/services/scheduler/internal/rulestest"
)

var waiting, waitClass, claiming = rulestest.Claim, rulestest.WaitClass, rulestest.Claiming

// bound is the claim with its volume, which can be used on the node of that hostname.
func (f *fixture) bound(c *corev1.PersistentVolumeClaim, host string) {
	v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-" + c.Name, ResourceVersion: "9"}}
	v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: c.Namespace, Name: c.Name, UID: c.UID}
	v.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{rulestest.Expression(corev1.LabelHostname,
			corev1.NodeSelectorOpIn, host)}}}
	v.Status.Phase = corev1.VolumeBound
	f.SetVolume(v)
	b := c.DeepCopy()
	b.ResourceVersion, b.Spec.VolumeName, b.Status.Phase = "9", v.Name, corev1.ClaimBound
	b.Annotations = map[string]string{"pv.kubernetes.io/bind-completed": "yes"}
	f.SetClaim(b)
}

// chosen is the claim as the scheduler has written it.
func chosen(c *corev1.PersistentVolumeClaim, version, node string) *corev1.PersistentVolumeClaim {
	w := c.DeepCopy()
	w.ResourceVersion = version
	w.Annotations = map[string]string{"volume.kubernetes.io/selected-node": node}
	return w
}

// claims adds a node for each name, the class and the claim data.
func newClaims(t *testing.T, nodes ...string) (*fixture, *corev1.PersistentVolumeClaim) {
	f := newFixture(t)
	for _, name := range nodes {
		f.node(name, "4")
	}
	c := waiting("data")
	f.SetClass(waitClass())
	f.SetClaim(c)
	return f, c
}

// unmade is the fact about a claim for which a volume has yet to be made.
func unmade(claim, told string) string {
	return fmt.Sprintf("persistentvolumeclaim %q has no volume: the provisioner example.com/disk%s is to make one for "+
		"the Pod's node, and nodes are judged as if it did", claim, told)
}

// settled returns what became of the Pod whose wait is over.
func (f *fixture) settled() string {
	s, ok := f.NextSettled(f.now)
	switch {
	case !ok:
		return "waits"
	case s.Err != nil:
		return s.Err.Error()
	}
	return s.Pod.Name + ":" + s.Node
}

// A Pod whose claim has no volume is given its node, waits there for the claim, and is bound when it is bound; it takes
// its room meanwhile, and other Pods go on.
func TestAPodWaitsForItsClaims(t *testing.T) {
	f, c := newClaims(t, "n")
	f.add(pod("p", "3", claiming("data")), pod("q", "2"), pod("r", "1"))
	v, _ := f.Next(f.now)
	if len(v.Steps) != 1 || v.Steps[0].Volume != nil || v.Steps[0].Claim.Name != "data" || v.Steps[0].Node != "n" {
		t.Fatalf("the steps are %+v", v.Steps)
	}
	f.want("q:- r:n")
	f.SetClaim(chosen(c, "2", "n"))
	f.SetClaim(c) // the watch is behind
	f.Await("uid-p", f.now)
	if got := f.settled(); got != "waits" {
		t.Errorf("before: %s", got)
	}
	e, _ := f.Explain(types.NamespacedName{Namespace: "default", Name: "p"})
	if e.Summary != "waits on node n for its claims to be bound: data" || len(e.Facts) != 3 ||
		!e.Facts[0].Time.Equal(f.now) || e.Facts[1].Message != unmade("data", ", which has no CSIDriver,") ||
		!e.Facts[2].Time.Equal(f.now.Add(10*time.Minute)) {
		t.Errorf("explained as %+v", e)
	}
	f.now = f.now.Add(time.Minute)
	f.bound(c, "n")
	if got := f.settled(); got != "p:n" {
		t.Errorf("afterwards: %s", got)
	}
	if got := f.settled(); got != "waits" {
		t.Errorf("a second time: %s", got)
	}
	f.add(pod("p", "3", claiming("data"), onNode("n")))
	f.want("")
}

// What makes the wait for a claim vain gives the Pod's room back and lets it be tried again, after a delay.
func TestAVainWait(t *testing.T) {
	const start, minutes = 10, time.Minute
	for name, row := range map[string]struct {
		happens func(*fixture, *corev1.PersistentVolumeClaim)
		want    string
	}{
		"nothing for almost ten minutes": {func(f *fixture, _ *corev1.PersistentVolumeClaim) {
			f.now = f.now.Add(start*minutes - time.Second)
		}, "waits"},
		"nothing for ten minutes": {func(f *fixture,
			_ *corev1.PersistentVolumeClaim) {
			f.now = f.now.Add(start * minutes)
		},
			"timed out waiting for persistentvolumeclaims to be bound: data"},
		"the provisioner gives up": {func(f *fixture, c *corev1.PersistentVolumeClaim) {
			f.SetClaim(chosen(c, "3",
				""))
		},
			`provisioning failed for persistentvolumeclaim "data": its annotation volume.kubernetes.io/selected-node ` +
				`is "", it was "n"`},
		"the claim is deleted": {func(f *fixture, c *corev1.PersistentVolumeClaim) { f.RemoveClaim(c) },
			`persistentvolumeclaim "data" has been deleted`},
		"a volume of another node": {func(f *fixture, c *corev1.PersistentVolumeClaim) { f.bound(c, "m") },
			`persistentvolume "pv-data", which persistentvolumeclaim "data" got, cannot be used on node n`},
	} {
		t.Run(name, func(t *testing.T) {
			f, c := newClaims(t, "n")
			f.add(pod("p", "3", claiming("data")))
			f.Next(f.now)
			f.SetClaim(chosen(c, "2", "n"))
			f.Await("uid-p", f.now)
			if at, ok := f.NextTime(f.now); !ok || !at.Equal(f.now.Add(start*minutes)) {
				t.Errorf("looks again at %v, %v", at, ok)
			}
			row.happens(f, c)
			if got := f.settled(); got != row.want {
				t.Errorf("got %s", got)
			}
			f.add(pod("q", "3"))
			if want := map[bool]string{true: "q:-", false: "q:n"}[row.want == "waits"]; f.run() != want {
				t.Errorf("then q does not go as %s", want)
			}
		})
	}
}

// A Pod that waited for its claims in vain says so while it waits to be tried again, and that nodes are judged as if
// volumes were made.
func TestExplainTellsOfAVainWait(t *testing.T) {
	f, c := newClaims(t, "n")
	f.add(pod("p", "3", claiming("data")))
	f.Next(f.now)
	f.SetClaim(chosen(c, "2", "n"))
	f.Await("uid-p", f.now)
	f.SetClaim(chosen(c, "3", ""))
	why := f.settled()
	e, _ := f.Explain(types.NamespacedName{Namespace: "default", Name: "p"})
	if want := "waits to be tried again: on node n it waited for its claims in vain: " + why; e.Summary != want {
		t.Errorf("%q, want %q", e.Summary, want)
	}
	var facts []string
	for _, fact := range e.Facts[2:] {
		facts = append(facts, fact.Reason+": "+fact.Message)
	}
	if want := []string{"ClaimsNotBound: it waited on node n for its claims in vain: " + why,
		"VolumeMissing: " + unmade("data", ", which has no CSIDriver,"),
		"Nodes: 1 of 1: can take the Pod (n)"}; !slices.Equal(facts, want) {
		t.Errorf("%q, want %q", facts, want)
	}
	f.now = f.now.Add(time.Minute)
	f.add(pod("q", "4", withPriority(1)))
	f.want("q:n p:-")
	if e, _ := f.Explain(types.NamespacedName{Namespace: "default", Name: "p"}); strings.Contains(fmt.Sprint(e), why) {
		t.Errorf("after the next try: %+v", e)
	}
}

// A claim that may get a volume that is there, or has one, waits for no provisioner.
func TestExplainTellsOfClaimsWithoutAVolume(t *testing.T) {
	driver := &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: "example.com/disk"}}
	free := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "free", ResourceVersion: "1"}}
	free.Spec.StorageClassName = "wait"
	free.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	free.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	free.Status.Phase = corev1.VolumeAvailable
	by := func(provisioner string) func(*fixture) {
		return func(f *fixture) {
			class := waitClass()
			class.Provisioner = provisioner
			f.SetClass(class)
		}
	}
	for name, row := range map[string]struct {
		change func(*fixture)
		want   string
	}{
		"without a CSIDriver": {func(*fixture) {}, unmade("data", ", which has no CSIDriver,")},
		"with a CSIDriver":    {func(f *fixture) { f.SetDriver(driver) }, unmade("data", "")},
		"whose CSIDriver is gone": {func(f *fixture) {
			f.SetDriver(driver)
			f.RemoveDriver(driver.Name)
		}, unmade("data", ", which has no CSIDriver,")},
		"of who took over": {func(f *fixture) {
			by("kubernetes.io/aws-ebs")(f)
			f.SetDriver(&storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: "ebs.csi.aws.com"}})
		}, strings.Replace(unmade("data", ""), "example.com/disk", "kubernetes.io/aws-ebs", 1)},
		"of the mesh": {by("local.keelson.dev"),
			strings.Replace(unmade("data", ""), "example.com/disk", "local.keelson.dev", 1)},
		"that people make":   {by("kubernetes.io/no-provisioner"), ""},
		"that is there":      {func(f *fixture) { f.SetVolume(free) }, ""},
		"that it has got":    {func(f *fixture) { f.bound(waiting("data"), "n") }, ""},
		"of no class at all": {func(f *fixture) { f.RemoveClass("wait") }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f, _ := newClaims(t, "n")
			row.change(f)
			f.add(pod("p", "1", claiming("data")))
			e, _ := f.Explain(types.NamespacedName{Namespace: "default", Name: "p"})
			got := ""
			for _, fact := range e.Facts {
				if fact.Reason == "VolumeMissing" {
					got += fact.Message
				}
			}
			if got != row.want {
				t.Errorf("%q, want %q", got, row.want)
			}
		})
	}
}

// A process that no longer leads does not wait, and the new leader goes on from what the claim says.
func TestALeadEndsWaits(t *testing.T) {
	f, c := newClaims(t, "n", "m")
	f.add(pod("p", "1", claiming("data")))
	f.Next(f.now)
	f.SetClaim(chosen(c, "2", "m"))
	f.Await("uid-p", f.now)
	f.Lead(corev1.DefaultSchedulerName, false, f.now)
	f.bound(waiting("other"), "m")
	if got := f.settled(); got != "waits" {
		t.Errorf("got %s", got)
	}
	if f.State().Pods() != 0 {
		t.Error("the Pod keeps its room")
	}
	f.Lead(corev1.DefaultSchedulerName, true, f.now)
	f.want("p:m")
}

// SAF-185, SAF-186: where a volume can be used on one node only, there go all Pods that use it; one that does not fit
// there goes nowhere.
func TestBoundVolumesHoldPods(t *testing.T) {
	f, c := newClaims(t, "n", "m", "o")
	f.bound(c, "m")
	f.add(pod("p", "2", claiming("data")), pod("q", "2", claiming("data")), pod("r", "1", claiming("data")))
	f.want("p:m q:m r:-")
	message, _ := func() (string, bool) {
		_, condition, ok := f.Unschedulable("uid-r")
		return condition.Message, ok
	}()
	if want := "0/3 nodes are available: 1 Insufficient cpu, " +
		"2 node(s) didn't match PersistentVolume's node affinity."; message != want {
		t.Errorf("refused: %s", message)
	}
}

// unmade adds the claims a and b of a class whose volumes no provisioner makes, and the volumes that there are.
func (f *fixture) unmade(names ...string) {
	class := waitClass()
	class.Provisioner = "kubernetes.io/no-provisioner"
	f.SetClass(class)
	for _, name := range names {
		v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}}
		v.Spec.StorageClassName, v.Spec.AccessModes = "wait", []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
		v.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
		v.Status.Phase = corev1.VolumeAvailable
		f.SetVolume(v)
	}
	f.SetClaim(waiting("a"))
	f.SetClaim(waiting("b"))
}

// A volume stays promised to a claim while any of its Pods is on its way to it, whichever node it goes to.
func TestASharedAssumption(t *testing.T) {
	f := newFixture(t)
	f.node("n", "2")
	f.node("m", "2")
	f.unmade("v1", "v2")
	f.add(pod("p", "2", claiming("a")), pod("q", "2", claiming("a")))
	first, _ := f.Next(f.now)
	second, _ := f.Next(f.now)
	if first.Node == second.Node || second.Node == "" {
		t.Fatalf("p goes to %q, q to %q", first.Node, second.Node)
	}
	volume := func(v cycle.Verdict) string {
		if len(v.Steps) != 1 || v.Steps[0].Volume == nil {
			return ""
		}
		return v.Steps[0].Volume.Name
	}
	f.Failed("uid-p", f.now) // q is on its way
	f.RemovePod(pod("p", "2", claiming("a")))
	f.add(pod("r", "1", claiming("b")), pod("s", "1", claiming("a")))
	third, _ := f.Next(f.now)
	fourth, _ := f.Next(f.now)
	want := []string{"v1", "v1", "v2", "v1"}
	if got := []string{volume(first), volume(second), volume(third), volume(fourth)}; !slices.Equal(got, want) {
		t.Errorf("p and q of one claim, r of another and s of the first get %v, want %v", got, want)
	}
}

// Two Pods on their way do not get one volume, and two that share a claim go to one node.
func TestAssumptions(t *testing.T) {
	f := newFixture(t)
	for _, name := range []string{"n", "m"} {
		f.node(name, "4")
	}
	f.unmade("v")
	f.add(pod("p", "1", claiming("a")), pod("q", "1", claiming("b")))
	first, _ := f.Next(f.now)
	second, _ := f.Next(f.now)
	if len(first.Steps) != 1 || first.Steps[0].Volume.Name != "v" || second.Node != "" ||
		second.Message() != "0/2 nodes are available: 2 node(s) didn't find available persistent volumes to bind." {
		t.Errorf("steps %+v, then %q: %s", first.Steps, second.Node, second.Message())
	}
	f.Failed("uid-p", f.now) // the API server refused
	f.now = f.now.Add(time.Second)
	if got := f.run(); strings.Count(got, ":-") != 1 || strings.Count(got, ":") != 2 {
		t.Errorf("given back: %s", got)
	}

	f, _ = newClaims(t, "n", "m", "o")
	var nodes []string
	for i := range 6 {
		f.add(pod(fmt.Sprint(i), "100m", claiming("data")))
		v, _ := f.Next(f.now)
		nodes = append(nodes, v.Node)
	}
	for _, node := range nodes {
		if node != nodes[0] || node == "" {
			t.Errorf("Pods of one claim go to %v", nodes)
		}
	}
}

// An event of a claim, a volume or a class lets the Pods be tried again that it may help, and a claim of
// ReadWriteOncePod is for one Pod after the other.
func TestClaimsRequeue(t *testing.T) {
	f := newFixture(t)
	f.node("n", "4")
	blocked := func(want string) {
		t.Helper()
		f.now = f.now.Add(time.Minute)
		f.run()
		_, condition, ok := f.Unschedulable("uid-p")
		if want = "0/1 nodes are available: " + want + "."; !ok || condition.Message != want {
			t.Errorf("refused: %s, want %s", condition.Message, want)
		}
	}
	f.add(pod("p", "1", claiming("data")))
	blocked(`persistentvolumeclaim "data" not found`)
	single := func(c *corev1.PersistentVolumeClaim) {
		c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}
	}
	f.SetClaim(waiting("data", single, func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimLost }))
	blocked(`persistentvolumeclaim "data" bound to non-existent persistentvolume ""`)
	f.SetClaim(waiting("data", single, func(c *corev1.PersistentVolumeClaim) {
		c.ResourceVersion, c.DeletionTimestamp = "2", &metav1.Time{Time: start}
	}))
	blocked(`persistentvolumeclaim "data" is being deleted`)
	c := waiting("data", single, func(c *corev1.PersistentVolumeClaim) { c.ResourceVersion = "3" })
	f.SetClaim(c)
	blocked("pod has unbound immediate PersistentVolumeClaims")
	other := pod("other", "1", claiming("data"), onNode("n"))
	f.add(other)
	f.SetClass(waitClass())
	blocked("1 node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode")
	bound := c.DeepCopy()
	bound.ResourceVersion, bound.Spec.VolumeName = "4", "pv-data"
	bound.Annotations = map[string]string{"pv.kubernetes.io/bind-completed": "yes"}
	f.RemovePod(other)
	f.SetClaim(bound)
	blocked("1 node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)")
	f.bound(c, "n")
	f.now = f.now.Add(time.Minute)
	f.want("p:n")
}
