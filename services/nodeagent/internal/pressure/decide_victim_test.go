package pressure

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

const gi = 1 << 30

// podOf is a Pod of a priority that requests an amount of memory and of disk, "" for none, and uses that many GiB.
func podOf(name string, priority int32, request string, used float64) Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)},
		Spec: corev1.PodSpec{Priority: &priority, Containers: []corev1.Container{{Name: "m"}}}}
	if request != "" {
		p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"memory": resource.MustParse(request),
			"ephemeral-storage": resource.MustParse(request)}
	}
	return Pod{Pod: p, Usage: Usage{Pod: int64(used * gi), Containers: map[string]int64{"m": int64(used * gi)}}}
}

func order(what starved, pods ...Pod) string {
	var names []string
	for _, p := range candidatesOf(what, pods) {
		names = append(names, p.Name)
	}
	return strings.Join(names, " ")
}

func TestOrder(t *testing.T) {
	vector := []Pod{podOf("A", 0, "1Gi", 0.5), podOf("B", 1000, "1Gi", 1.5), podOf("C", 1000, "", 0.2),
		podOf("D", 0, "1Gi", 1.1)}
	classes := []Pod{podOf("guaranteed", 0, "1Gi", 0.9), podOf("burstable", 0, "1Gi", 1),
		podOf("besteffort", 0, "", 0.1)}
	for _, r := range []struct {
		name string
		what starved
		pods []Pod
		want string
	}{
		{"SCH-070: the vector, SCH-068, SCH-002", memory, vector, "D B C A"},
		{"SCH-070: the disk is ranked alike", storage, vector, "D B C A"},
		{"SCH-069: who uses as much as requested comes last, however low its priority", memory,
			[]Pod{podOf("within", -10, "1Gi", 1), podOf("beyond", 1000, "1Gi", 1.001)}, "beyond within"},
		{"SAF-084, SAF-085, SAF-086, SAF-087, SAF-088: classes of one priority within their requests", memory, classes,
			"besteffort burstable guaranteed"},
		{"SAF-090: of those beyond, who is so most", memory,
			[]Pod{podOf("less", 0, "1Gi", 1.2), podOf("most", 0, "3Gi", 3.5), podOf("more", 0, "", 0.3)},
			"most more less"},
		{"inodes cannot be requested", inodes, []Pod{podOf("few", 0, "4Gi", 1), podOf("many", 0, "", 2),
			podOf("high", 1, "", 9)}, "many few high"},
		{"processes go by priority and number alone", pids, []Pod{podOf("none", -1, "", 0), podOf("few", -2, "4Gi", 1),
			podOf("many", -2, "", 2)}, "many few none"},
		{"equal ones go by name", memory, []Pod{podOf("b", 0, "", 1), podOf("a", 0, "", 1)}, "a b"},
		{"without a priority it is 0", memory, []Pod{podOf("one", 1, "", 1), func() Pod {
			p := podOf("nil", 0, "", 1)
			p.Spec.Priority = nil
			return p
		}(), podOf("minus", -1, "", 1)}, "minus nil one"},
	} {
		if got := order(r.what, r.pods...); got != r.want {
			t.Errorf("%s: %s, want %s", r.name, got, r.want)
		}
	}
}

// Which Pods may be evicted.
func TestEvictable(t *testing.T) {
	change := func(edit func(*Pod)) Pod {
		p := podOf("p", 0, "", 1)
		edit(&p)
		return p
	}
	for _, r := range []struct {
		name string
		pod  Pod
		want bool
	}{
		{"any", change(func(*Pod) {}), true},
		{"of the highest priority of users", podOf("p", 1000000000, "", 1), true},
		{"critical", podOf("p", 2000000000, "", 1), false},
		{"static", change(func(p *Pod) { p.Static = true }), false},
		{"has succeeded", change(func(p *Pod) { p.Status.Phase = corev1.PodSucceeded }), false},
		{"fails already", change(func(p *Pod) { p.Ending = true }), false},
		{"has come to its end", change(func(p *Pod) { p.Ended = true }), false},
		{"is being deleted, and takes its time", change(func(p *Pod) { p.DeletionTimestamp = &metav1.Time{} }), true},
	} {
		if got := order(memory, r.pod) != ""; got != r.want {
			t.Errorf("%s: may be evicted %v, want %v", r.name, got, r.want)
		}
	}
}

var hardMemory = Threshold{Signal: MemoryAvailable, Least: Amount{Quantity: resource.MustParse("100Mi")}}

// One Pod is evicted at a time: no other before the previous one has ended, or 30 seconds after its grace.
func TestOneAtATime(t *testing.T) {
	pods := []Pod{podOf("first", 0, "", 2), podOf("second", 0, "", 1)}
	in := Input{Now: begin}
	evict := func(after time.Duration) string {
		in.Now = begin.Add(after)
		var e *Eviction
		if e, in.State = Evict(hardMemory, Level{}, pods, in); e == nil {
			return ""
		}
		return e.Pod.Name
	}
	if got := evict(0); got != "first" {
		t.Fatalf("evicted %q, want first", got)
	}
	pods[0].Ending = true
	for _, r := range []struct {
		after time.Duration
		want  string
	}{{10 * time.Second, ""}, {31*time.Second - 1, ""}, {31 * time.Second, "second"}} {
		if got := evict(r.after); got != r.want {
			t.Errorf("after %v: evicted %q, want %q", r.after, got, r.want)
		}
	}
	in.State.victim, pods[0].Ended = victim{uid: "first", until: begin.Add(time.Hour)}, true
	if got := evict(40 * time.Second); got != "second" {
		t.Errorf("when the first had ended: evicted %q, want second", got)
	}
}

// A hard threshold grants a second, a soft one the lesser of the Pod's period and the bound, and at least a second.
func TestGrace(t *testing.T) {
	soft := hardMemory
	soft.Soft = true
	for _, r := range []struct {
		name      string
		threshold Threshold
		own       *int64
		most      int
		want      time.Duration
	}{
		{"hard", hardMemory, ptr.To(int64(300)), 60, time.Second},
		{"soft, bounded", soft, ptr.To(int64(300)), 60, time.Minute},
		{"soft, the most that a Pod can ask for", soft, ptr.To(int64(1<<63 - 1)), 60, time.Minute},
		{"soft, the Pod's own", soft, ptr.To(int64(20)), 60, 20 * time.Second},
		{"soft, without its own", soft, nil, 60, time.Minute},
		{"soft, the default", soft, ptr.To(int64(30)), 0, time.Second},
		{"soft, at once", soft, ptr.To(int64(0)), 60, time.Second},
	} {
		p := podOf("p", 0, "", 1)
		p.Spec.TerminationGracePeriodSeconds = r.own
		in := Input{Now: begin, Rules: Rules{MaxPodGrace: time.Duration(r.most) * time.Second}}
		e, _ := Evict(r.threshold, Level{}, []Pod{p}, in)
		if e == nil || e.Why.Grace != r.want {
			t.Errorf("%s: %+v, want %v", r.name, e, r.want)
		}
	}
}

// SAF-070: the message of an evicted Pod, as the kubelet words it.
func TestMessage(t *testing.T) {
	p := podOf("p", 0, "1Gi", 2)
	p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "within"}, corev1.Container{Name: "unknown"})
	p.Spec.Containers[1].Resources.Requests = corev1.ResourceList{"memory": resource.MustParse("1Gi")}
	p.Usage.Containers["within"] = gi
	percent := Threshold{Signal: NodeFsAvailable, Least: Amount{Percent: 10}}
	for _, r := range []struct {
		threshold Threshold
		level     Level
		want      string
	}{
		{hardMemory, Level{Available: 50 << 20, Capacity: 4 * gi}, "The node was low on resource: memory. Threshold " +
			"quantity: 100Mi, available: 50Mi. Container m was using 2Gi, request is 1Gi, has larger " +
			"consumption of memory. "},
		{percent, Level{Available: 512 << 20, Capacity: 10 * gi}, "The node was low on resource: ephemeral-storage. " +
			"Threshold quantity: 1Gi, available: 512Mi. Container m was using 2Gi, request is 1Gi, has larger " +
			"consumption of ephemeral-storage. Container within was using 1Gi, request is 0, has larger consumption " +
			"of ephemeral-storage. "},
		{Threshold{Signal: PIDAvailable, Least: Amount{Quantity: resource.MustParse("7")}}, Level{Available: 6,
			Capacity: 100}, "The node was low on resource: pids. Threshold quantity: 7, available: 6. "},
		{Threshold{Signal: ImageFsInodesFree, Least: Amount{Percent: 5}}, Level{Available: 6, Capacity: 200},
			"The node was low on resource: inodes. Threshold quantity: 10, available: 6. "},
	} {
		e, _ := Evict(r.threshold, r.level, []Pod{p}, Input{Now: begin})
		if e == nil || e.Why.Message != r.want || e.Why.Reason != "Evicted" || !e.Why.Disruption {
			t.Errorf("%s: %+v, want %q", r.threshold.Signal, e, r.want)
		}
	}
}

// While the node is short of something, it admits only some Pods.
func TestAdmit(t *testing.T) {
	const mem, disk, pid = corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure
	tolerant := podOf("p", 0, "", 0)
	tolerant.Spec.Tolerations = []corev1.Toleration{{Key: "node.kubernetes.io/memory-pressure",
		Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}}
	static := podOf("static", 0, "", 0)
	static.Static = true
	kinds := []Pod{podOf("best-effort", 0, "", 0), podOf("burstable", 0, "1Gi", 0), tolerant,
		podOf("critical", 2000000000, "", 0), static}
	for _, r := range []struct {
		conditions []corev1.NodeConditionType
		admitted   string
		message    string
	}{
		{nil, "[true true true true true]", ""},
		{[]corev1.NodeConditionType{mem}, "[false true true true true]",
			"Pod was rejected: The node had condition: [MemoryPressure]. "},
		{[]corev1.NodeConditionType{disk}, "[false false false true true]",
			"Pod was rejected: The node had condition: [DiskPressure]. "},
		{[]corev1.NodeConditionType{pid}, "[false false false true true]",
			"Pod was rejected: The node had condition: [PIDPressure]. "},
		{[]corev1.NodeConditionType{disk, mem}, "[false false false true true]",
			"Pod was rejected: The node had condition: [DiskPressure MemoryPressure]. "},
	} {
		var admitted []bool
		for _, p := range kinds {
			why := Admit(p.Pod, p.Static, r.conditions)
			admitted = append(admitted, why == nil)
			// SAF-070: the condition does not apply to a refusal.
			if why != nil && (why.Reason != "Evicted" || why.Message != r.message || why.Disruption) {
				t.Errorf("%v: %+v, want %q", r.conditions, why, r.message)
			}
		}
		if fmt.Sprint(admitted) != r.admitted {
			t.Errorf("%v: admitted %v, want %s", r.conditions, admitted, r.admitted)
		}
	}
}

// SCH-068, SCH-069: in any state of a node, at most one Pod is evicted in a pass, never a critical one, none within
// its request while others exceed theirs, and of those none while another of lower priority exceeds its request.
func TestEvictProperties(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	priorities, requests := []int32{-5, 0, 7, 1999999999, 2000000000, 2000001000}, []string{"", "512Mi", "1Gi"}
	for range 5000 {
		pods := make([]Pod, random.IntN(6))
		for i := range pods {
			pods[i] = podOf(fmt.Sprint("p", i), priorities[random.IntN(len(priorities))],
				requests[random.IntN(len(requests))], float64(random.IntN(5))/2)
			pods[i].Ending, pods[i].Ended = random.IntN(8) == 0, random.IntN(8) == 0
		}
		in := Input{Now: begin}
		e, next := Evict(hardMemory, Level{}, pods, in)
		candidates := 0
		for i := range pods {
			p := &pods[i]
			if *p.Spec.Priority >= 2000000000 || p.Ending || p.Ended {
				continue
			}
			candidates++
			if e == nil {
				continue
			}
			chosen := e.Pod
			beyond, other := chosen.Usage.Pod > chosen.request(memory), p.Usage.Pod > p.request(memory)
			if other && (!beyond || *p.Spec.Priority < *chosen.Spec.Priority) {
				t.Fatalf("%s goes (priority %d, beyond %v) before %s (%d, beyond %v)", chosen.Name,
					*chosen.Spec.Priority, beyond, p.Name, *p.Spec.Priority, other)
			}
		}
		if (e != nil) != (candidates > 0) {
			t.Fatalf("of %d candidates %+v was chosen", candidates, e)
		}
		if e == nil {
			continue
		}
		if *e.Pod.Spec.Priority >= 2000000000 || e.Pod.Ending || e.Pod.Ended {
			t.Fatalf("%s was chosen: priority %d, ending %v, ended %v", e.Pod.Name, *e.Pod.Spec.Priority, e.Pod.Ending,
				e.Pod.Ended)
		}
		in.State = next
		if again, _ := Evict(hardMemory, Level{}, pods, in); again != nil {
			t.Fatalf("%s goes while %s has not come to its end", again.Pod.Name, e.Pod.Name)
		}
	}
}
