package cycle_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/services/scheduler/internal/rulestest"
)

const disk = "example.com/disk"

// taking says how many volumes of the driver a node takes.
func taking(node string, volumes int32) *storagev1.CSINode {
	return &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: node}, Spec: storagev1.CSINodeSpec{
		Drivers: []storagev1.CSINodeDriver{{Name: disk, Allocatable: &storagev1.VolumeNodeResources{Count: &volumes}},
			{Name: "ebs.csi.aws.com", Allocatable: &storagev1.VolumeNodeResources{Count: &volumes}},
			{Name: "example.com/endless"}}}}
}

func attached(volume, node string) *storagev1.VolumeAttachment {
	return &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "a-" + volume},
		Spec: storagev1.VolumeAttachmentSpec{Attacher: disk, NodeName: node,
			Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: ptr.To("pv-" + volume)}}}
}

// having adds claims with their volumes, of the driver unless they change it.
func (f *fixture) having(names []string, change ...func(*corev1.PersistentVolume)) {
	for _, name := range names {
		v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-" + name}}
		v.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: disk, VolumeHandle: name}
		v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "default", Name: name}
		for _, change := range change {
			change(v)
		}
		c := waiting(name)
		c.Spec.VolumeName, c.Annotations = v.Name, map[string]string{"pv.kubernetes.io/bind-completed": "yes"}
		f.SetVolume(v)
		f.SetClaim(c)
	}
}

func single(c *corev1.PersistentVolumeClaim) {
	c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}
}

// A node takes two volumes of the driver; a Pod with claim a runs there. Which other Pods fit.
func TestVolumeLimits(t *testing.T) {
	for name, test := range map[string]struct {
		before func(*fixture)
		pod    *corev1.Pod
		fits   bool
	}{
		"one more":               {nil, pod("p", "0", claiming("b")), true},
		"two more":               {nil, pod("p", "0", claiming("b", "c")), false},
		"one that is there":      {nil, pod("p", "0", claiming("a", "b")), true},
		"one claim, named twice": {nil, pod("p", "0", claiming("b", "b")), true},
		"no claim":               {func(f *fixture) { f.SetVolumeLimits(taking("n", 0)) }, pod("p", "0"), true},
		"one at a limit of 0": {func(f *fixture) { f.SetVolumeLimits(taking("n", 0)) },
			pod("p", "0", claiming("b")), false},
		"one that is there, over the limit": {func(f *fixture) { f.SetVolumeLimits(taking("n", 0)) },
			pod("p", "0", claiming("a")), true},
		"no CSINode": {func(f *fixture) { f.RemoveVolumeLimits("n") }, pod("p", "0", claiming("b", "c")), true},
		"another Pod with the same volume": {func(f *fixture) { f.add(pod("q", "0", claiming("a"), onNode("n"))) },
			pod("p", "0", claiming("b")), true},
		"another Pod with another": {func(f *fixture) { f.add(pod("q", "0", claiming("c"), onNode("n"))) },
			pod("p", "0", claiming("b")), false},
		"another volume attached": {func(f *fixture) { f.SetAttachment(attached("c", "n")) },
			pod("p", "0", claiming("b")), false},
		"its volume attached": {func(f *fixture) {
			f.SetAttachment(attached("b", "n"))
			f.SetVolumeLimits(taking("n", 2))
		}, pod("p", "0", claiming("b")), true},
		"the other Pod's volume attached": {func(f *fixture) { f.SetAttachment(attached("a", "n")) },
			pod("p", "0", claiming("b")), true},
		"attached elsewhere": {func(f *fixture) { f.SetAttachment(attached("c", "m")) },
			pod("p", "0", claiming("b")), true},
		"a Pod on its way": {func(f *fixture) {
			f.add(pod("q", "0", claiming("b")))
			f.run()
		}, pod("p", "0", claiming("c")), false},
		"no volume of a driver": {func(f *fixture) {
			f.having([]string{"x", "y"}, func(v *corev1.PersistentVolume) { v.Spec.CSI = nil })
		}, pod("p", "0", claiming("x", "y")), true},
		"a driver without a limit": {func(f *fixture) {
			f.having([]string{"x", "y"}, func(v *corev1.PersistentVolume) { v.Spec.CSI.Driver = "example.com/endless" })
		}, pod("p", "0", claiming("x", "y")), true},
		"two claims of one disk": {func(f *fixture) {
			f.having([]string{"x", "y"}, func(v *corev1.PersistentVolume) { v.Spec.CSI.VolumeHandle = "same" })
		}, pod("p", "0", claiming("x", "y")), true},
		"a plugin that the driver took over from": {func(f *fixture) {
			f.having([]string{"x", "y", "z"}, func(v *corev1.PersistentVolume) {
				v.Spec.CSI = nil
				v.Spec.AWSElasticBlockStore = &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: "aws://z/" + v.Name}
			})
		}, pod("p", "0", claiming("x", "y", "z")), false},
		"volumes that are to be made": {func(f *fixture) {
			f.SetClass(waitClass())
			f.SetClaim(waiting("x"))
			f.SetClaim(waiting("y"))
		}, pod("p", "0", claiming("x", "y")), false},
		"one that is to be made": {func(f *fixture) {
			f.SetClass(waitClass())
			f.SetClaim(waiting("x"))
		}, pod("p", "0", claiming("x")), true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.node("n", "1")
			f.SetVolumeLimits(taking("n", 2))
			f.having([]string{"a", "b", "c"})
			f.add(pod("running", "0", claiming("a"), onNode("n")))
			if test.before != nil {
				test.before(f)
			}
			f.add(test.pod)
			v, _ := f.Next(f.now)
			const full = "0/1 nodes are available: 1 node(s) exceed max volume count."
			if (v.Node == "n") != test.fits || v.Node == "" && v.Message() != full {
				t.Errorf("placed on %q, or refused: %s", v.Node, v.Message())
			}
		})
	}
}

// What makes a place for a volume requeues the Pod that waits for it, and nothing else does. SCH-032
func TestWhatRequeuesForAVolume(t *testing.T) {
	running := pod("running", "0", claiming("a"), onNode("n"))
	for name, test := range map[string]struct {
		event func(*fixture)
		want  string
	}{
		"a Pod with a volume goes":  {func(f *fixture) { f.RemovePod(running) }, "p:n"},
		"a Pod without one goes":    {func(f *fixture) { f.RemovePod(pod("idle", "0", onNode("n"))) }, ""},
		"a volume is detached":      {func(f *fixture) { f.RemoveAttachment("a-x") }, "p:n"},
		"one is detached elsewhere": {func(f *fixture) { f.RemoveAttachment("a-y") }, ""},
		"it moves":                  {func(f *fixture) { f.SetAttachment(attached("x", "m")) }, "p:n"},
		"the node takes more":       {func(f *fixture) { f.SetVolumeLimits(taking("n", 3)) }, "p:n"},
		"the node takes as many":    {func(f *fixture) { f.SetVolumeLimits(taking("n", 2)) }, ""},
		"the node takes any number": {func(f *fixture) { f.RemoveVolumeLimits("n") }, "p:n"},
		"its volume is put there":   {func(f *fixture) { f.add(pod("q", "0", claiming("b"), onNode("n"))) }, "p:n"},
		"a volume of many is put there": {func(f *fixture) {
			f.add(pod("q", "0", claiming("b"), onNode("m")))
			f.want("p:-")
			f.wait(time.Minute)
			f.add(pod("r", "0", claiming("b"), onNode("n")))
		}, "p:n"},
		"the volume is no driver's":   {func(f *fixture) { f.having([]string{"a"}, folder) }, "p:n"},
		"what is attached is not":     {func(f *fixture) { f.having([]string{"x"}, folder) }, "p:n"},
		"the claim of another is new": {func(f *fixture) { f.having([]string{"z"}) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.node("n", "1")
			f.SetVolumeLimits(taking("n", 2))
			f.having([]string{"a", "b", "x", "y"})
			f.SetAttachment(attached("x", "n"))
			f.SetAttachment(attached("y", "m"))
			f.add(running, pod("idle", "0", onNode("n")), pod("p", "0", claiming("b")))
			f.want("p:-")
			f.wait(time.Minute)
			f.want("")
			test.event(f)
			f.want(test.want)
		})
	}
}

func folder(v *corev1.PersistentVolume) {
	v.Spec.CSI, v.ResourceVersion = nil, "2"
	v.Spec.HostPath = &corev1.HostPathVolumeSource{Path: "/"}
}

// Pods that each have a volume of their own are of one class.
func TestPodsWithVolumesOfTheirOwnAreAlike(t *testing.T) {
	f := newFixture(t)
	for i := range 20 {
		name := fmt.Sprintf("c%02d", i)
		f.having([]string{name})
		f.add(pod("p"+name, "1", claiming(name)))
	}
	f.run()
	if n := f.WaitingClasses(); n != 1 {
		t.Errorf("they are of %d classes", n)
	}
}

// A volume with zones keeps its Pod from others, and preemption does not help; package volumes has the cases.
func TestVolumeZones(t *testing.T) {
	const zone = corev1.LabelTopologyZone
	type labels = map[string]string
	for name, test := range map[string]struct {
		volume, node labels
		fits         bool
	}{
		"the same zone":        {labels{zone: "a"}, labels{zone: "a"}, true},
		"another zone":         {labels{zone: "a"}, labels{zone: "b"}, false},
		"a node without zones": {labels{zone: "a"}, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newPreempting(t)
			f.node("n", "1", func(n *corev1.Node) {
				for key, value := range test.node {
					n.Labels[key] = value
				}
			})
			f.running(pod("low", "1", onNode("n")))
			f.RemovePod(f.pods["low"])
			f.having([]string{"a"}, func(v *corev1.PersistentVolume) { v.Labels = test.volume })
			f.add(pod("p", "0", claiming("a"), withPriority(1)))
			v, _ := f.Next(f.now)
			const outside = "0/1 nodes are available: 1 node(s) had no available volume zone. preemption: " +
				"0/1 nodes are available: 1 Preemption is not helpful for scheduling."
			if (v.Node == "n") != test.fits || v.Node == "" && v.Message() != outside {
				t.Errorf("placed on %q, or refused: %s", v.Node, v.Message())
			}
			if test.fits {
				return
			}
			f.wait(time.Minute)
			f.having([]string{"a"}, func(v *corev1.PersistentVolume) { v.ResourceVersion = "2" })
			f.want("p:n") // the volume has lost its labels
		})
	}
}

// A claim that is for one Pod goes to the Pod of higher priority: the one that has it is evicted where it runs, and no
// other for it. SCH-035, SCH-036
func TestPreemptionTakesAClaimForOnePod(t *testing.T) {
	for name, test := range map[string]struct {
		running []*corev1.Pod
		pod     *corev1.Pod
		want    string
	}{
		"of lower priority": {[]*corev1.Pod{pod("user", "0", claiming("a"), onNode("n")), pod("low", "0", onNode("n")),
			pod("far", "0", onNode("m"))}, pod("p", "0", claiming("a"), withPriority(1)), "p>n(user)"},
		"of the same": {[]*corev1.Pod{pod("user", "0", claiming("a"), onNode("n"), withPriority(1))},
			pod("p", "0", claiming("a"), withPriority(1)), "p:-"},
		"of two claims, on two nodes": {[]*corev1.Pod{pod("user", "0", claiming("a"), onNode("n")),
			pod("other", "0", claiming("b"), onNode("m"))}, pod("p", "0", claiming("a", "b"), withPriority(1)), "p:-"},
		"of two claims, on one node": {[]*corev1.Pod{pod("user", "0", claiming("a"), onNode("n")),
			pod("other", "0", claiming("b"), onNode("n"))}, pod("p", "0", claiming("a", "b"), withPriority(1)),
			"p>n(other user)"},
		"where the Pod may not go": {[]*corev1.Pod{pod("user", "0", claiming("a"), onNode("n"))},
			pod("p", "0", claiming("a"), withPriority(1), rulestest.Selecting(corev1.LabelHostname, "m")), "p:-"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newPreempting(t)
			f.node("n", "1")
			f.node("m", "1")
			for _, name := range []string{"a", "b"} {
				f.having([]string{name})
				c := waiting(name, single, func(c *corev1.PersistentVolumeClaim) { c.ResourceVersion = "2" })
				c.Spec.VolumeName, c.Annotations = "pv-"+name,
					map[string]string{"pv.kubernetes.io/bind-completed": "yes"}
				f.SetClaim(c)
			}
			f.running(test.running...)
			f.add(test.pod)
			f.want2(test.want)
			if test.want == "p:-" {
				return
			}
			for _, p := range test.running {
				f.RemovePod(p)
			}
			f.want2("p:n")
		})
	}
}

func (f *preempting) want2(tries string) {
	f.t.Helper()
	if got := f.tries(); got != tries {
		f.t.Errorf("tries: %s, want %s", got, tries)
	}
}

// A Pod of higher priority takes the place of a volume; one that is still attached is none of a Pod's.
func TestPreemptionTakesThePlaceOfAVolume(t *testing.T) {
	f := newPreempting(t)
	f.node("n", "1")
	f.SetVolumeLimits(taking("n", 1))
	f.having([]string{"a", "b"})
	f.SetAttachment(attached("a", "n"))
	f.running(pod("low", "0", claiming("a"), onNode("n")), pod("idle", "0", onNode("n")))
	f.add(pod("p", "0", claiming("b"), withPriority(1)))
	f.want2("p:-")
	f.RemoveAttachment("a-a")
	f.wait(time.Minute)
	f.want2("p>n(low)")
	f.add(pod("q", "0", claiming("c"), withPriority(0)))
	f.having([]string{"c"})
	f.RemovePod(f.pods["low"])
	f.want2("p:n q:-") // the place was kept for p
}

// A Pod with a volume of a driver that wants it goes only to nodes where the driver is, and is tried again when it
// comes or does not want it any more.
func TestDriversThatMustBeThere(t *testing.T) {
	wanting := func(wants bool) *storagev1.CSIDriver {
		return &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: disk},
			Spec: storagev1.CSIDriverSpec{PreventPodSchedulingIfMissing: &wants}}
	}
	for name, test := range map[string]struct {
		event func(*fixture)
		want  string
	}{
		"the driver comes":           {func(f *fixture) { f.SetVolumeLimits(taking("n", 1)) }, "p:n"},
		"and takes no volume":        {func(f *fixture) { f.SetVolumeLimits(taking("n", 0)) }, ""},
		"it comes to another node":   {func(f *fixture) { f.SetVolumeLimits(taking("m", 1)) }, ""},
		"it does not want it":        {func(f *fixture) { f.SetDriver(wanting(false)) }, "p:n"},
		"its CSIDriver is gone":      {func(f *fixture) { f.RemoveDriver(disk) }, "p:n"},
		"its CSIDriver is as it was": {func(f *fixture) { f.SetDriver(wanting(true)) }, ""},
		"another driver comes": {func(f *fixture) {
			other := taking("n", 1)
			other.Spec.Drivers = other.Spec.Drivers[1:]
			f.SetVolumeLimits(other)
		}, ""},
		"the volume is of another driver": {func(f *fixture) {
			f.having([]string{"a"}, func(v *corev1.PersistentVolume) { v.Spec.CSI.Driver = "example.com/other" })
		}, "p:n"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.node("n", "4")
			f.having([]string{"a"})
			f.SetDriver(wanting(true))
			f.add(pod("free", "0"), pod("p", "0", claiming("a")))
			f.want("free:n p:-")
			_, condition, _ := f.Unschedulable("uid-p")
			const text = "0/1 nodes are available: 1 example.com/disk CSI driver is not installed on the node."
			if condition.Message != text {
				t.Errorf("refused: %s, want %s", condition.Message, text)
			}
			f.wait(time.Minute)
			test.event(f)
			f.want(test.want)
		})
	}
}
