package nodehealth

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

type nodeOption func(*corev1.Node)

// condition gives a Node a condition that the node itself reported a minute before the start.
func condition(kind corev1.NodeConditionType, status corev1.ConditionStatus) nodeOption {
	return func(n *corev1.Node) {
		then := metav1.NewTime(start.Add(-time.Minute))
		n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: kind, Status: status,
			Reason: "Kubelet", LastHeartbeatTime: then, LastTransitionTime: then})
	}
}

func ready(status corev1.ConditionStatus) nodeOption { return condition(corev1.NodeReady, status) }

func cordoned(n *corev1.Node) { n.Spec.Unschedulable = true }

// tainted gives a Node taints like "not-ready:NoSchedule", whose keys are those of Kubernetes unless they have a
// slash.
func tainted(taints ...string) nodeOption {
	return func(n *corev1.Node) {
		for _, text := range taints {
			key, effect, _ := strings.Cut(text, ":")
			if !strings.Contains(key, "/") {
				key = "node.kubernetes.io/" + key
			}
			then := metav1.NewTime(start.Add(-time.Minute))
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Effect: corev1.TaintEffect(effect),
				TimeAdded: &then})
		}
	}
}

func newNode(name string, options ...nodeOption) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid",
		CreationTimestamp: metav1.NewTime(start.Add(-time.Hour))}}
	for _, option := range options {
		option(n)
	}
	return n
}

// shortTaints prints taints as tainted reads them; those that were added at the start end in "!".
func shortTaints(taints []corev1.Taint) string {
	var out []string
	for _, t := range taints {
		text := strings.TrimPrefix(t.Key, "node.kubernetes.io/") + ":" + string(t.Effect)
		if t.TimeAdded != nil && t.TimeAdded.Time.Equal(start) {
			text += "!"
		}
		out = append(out, text)
	}
	return strings.Join(out, " ")
}

func TestTaints(t *testing.T) {
	const deprived = "not-ready:NoSchedule not-ready:NoExecute!"
	silent, turn := Standing{Silent: true}, Standing{Evict: true}
	for name, test := range map[string]struct {
		node     *corev1.Node
		standing Standing
		want     string // "-" for no change
	}{
		"a healthy node has none":         {newNode("n", ready("True")), Standing{}, "-"},
		"a new one that has not reported": {newNode("n"), Standing{}, "not-ready:NoSchedule!"},
		"it keeps what admission gave it": {newNode("n", tainted("not-ready:NoSchedule")), Standing{}, "-"},
		"a new one is never given up":     {newNode("n"), turn, "not-ready:NoSchedule!"},
		"it loses it when it is ready": {newNode("n", ready("True"), tainted("not-ready:NoSchedule")),
			Standing{}, ""},
		"one that is not ready": {newNode("n", ready("False")), Standing{}, "not-ready:NoSchedule!"},
		"POD-080 it is given up in its turn": {newNode("n", ready("False"), tainted("not-ready:NoSchedule")), turn,
			deprived},
		"SAF-179 one that was lost": {newNode("n", ready("Unknown")), Standing{Silent: true, Evict: true},
			"unreachable:NoSchedule! unreachable:NoExecute!"},
		"not before its turn": {newNode("n", ready("Unknown")), silent, "unreachable:NoSchedule!"},
		"never while no node is in order": {newNode("n", ready("Unknown")), Standing{Silent: true, Evict: true,
			Halted: true}, "unreachable:NoSchedule!"},
		"then it is taken back": {newNode("n", ready("Unknown"), tainted("unreachable:NoSchedule",
			"unreachable:NoExecute")), Standing{Halted: true}, "unreachable:NoSchedule"},
		"it stays without a turn of its own": {newNode("n", ready("Unknown"), tainted("unreachable:NoSchedule",
			"unreachable:NoExecute")), silent, "-"},
		"one that reports but is not ready": {newNode("n", ready("False"), tainted("unreachable:NoSchedule",
			"unreachable:NoExecute")), Standing{}, "not-ready:NoSchedule! not-ready:NoExecute!"},
		"one that returns": {newNode("n", ready("True"), tainted("unreachable:NoSchedule",
			"unreachable:NoExecute", "mine/a:NoExecute")), Standing{}, "mine/a:NoExecute"},
		"memory pressure": {newNode("n", ready("True"), condition(corev1.NodeMemoryPressure,
			"True")), Standing{}, "memory-pressure:NoSchedule!"},
		"disk pressure": {newNode("n", ready("True"), condition(corev1.NodeDiskPressure,
			"True")), Standing{}, "disk-pressure:NoSchedule!"},
		"process pressure": {newNode("n", ready("True"), condition(corev1.NodePIDPressure,
			"True")), Standing{}, "pid-pressure:NoSchedule!"},
		"no network": {newNode("n", ready("True"), condition(corev1.NodeNetworkUnavailable,
			"True")), Standing{}, "network-unavailable:NoSchedule!"},
		"a pressure that nobody knows of": {newNode("n", ready("True"), condition(corev1.NodeDiskPressure,
			"Unknown")), Standing{}, "-"},
		"a pressure that has gone": {newNode("n", ready("True"), condition(corev1.NodeDiskPressure,
			"False"), tainted("disk-pressure:NoSchedule")), Standing{}, ""},
		"cordoned": {newNode("n", ready("True"), cordoned), Standing{},
			"unschedulable:NoSchedule!"},
		"uncordoned": {newNode("n", ready("True"), tainted("unschedulable:NoSchedule")),
			Standing{}, ""},
		"another effect of a pressure is not us": {newNode("n", ready("True"), tainted("disk-pressure:NoExecute",
			"out-of-service:NoExecute", "not-ready:PreferNoSchedule")), Standing{}, "-"},
		"a condition of another's": {newNode("n", ready("True"), condition("Hot", "True")), Standing{},
			"-"},
	} {
		t.Run(name, func(t *testing.T) {
			// The conditions are as they should be: silence is TestSilence's.
			before := test.node.DeepCopy()
			for _, kind := range reported[1:] {
				if test.standing.Silent {
					condition(kind, corev1.ConditionUnknown)(test.node)
				}
			}
			plan := Decide(Input{Now: start, Node: test.node, Standing: test.standing})
			got := "-"
			if plan.Retaint {
				got = shortTaints(plan.Taints)
			}
			if got != test.want {
				t.Errorf("taints %q, want %q", got, test.want)
			}
			if shortTaints(test.node.Spec.Taints) != shortTaints(before.Spec.Taints) {
				t.Error("the Node changed")
			}
			test.node.Spec.Taints = plan.Taints
			if again := Decide(Input{Now: start.Add(time.Hour), Node: test.node,
				Standing: test.standing}); again.Retaint {
				t.Errorf("a second pass wants %q", shortTaints(again.Taints))
			}
		})
	}
}

// SAF-179: what is said of a node that does not report any more.
func TestSilence(t *testing.T) {
	const stopped = "=Unknown NodeStatusUnknown: Kubelet stopped posting node status."
	const never = "=Unknown NodeStatusNeverUpdated: Kubelet never posted node status."
	for name, test := range map[string]struct {
		node   *corev1.Node
		silent bool
		want   []string
		event  string
	}{
		"one that is heard": {node: newNode("n", ready("True"))},
		"one that was ready": {newNode("n", ready("True"), condition(corev1.NodeMemoryPressure, "False"),
			condition(corev1.NodeDiskPressure, "True"), condition(corev1.NodePIDPressure, "False")), true,
			[]string{"Ready" + stopped, "MemoryPressure" + stopped, "DiskPressure" + stopped, "PIDPressure" + stopped},
			"Normal NodeNotReady Node n status is now: NodeNotReady"},
		"one that was not ready": {newNode("n", ready("False"), condition(corev1.NodeMemoryPressure, "Unknown"),
			condition(corev1.NodeDiskPressure, "Unknown"), condition(corev1.NodePIDPressure, "Unknown")), true,
			[]string{"Ready" + stopped, "MemoryPressure=Unknown Kubelet: ", "DiskPressure=Unknown Kubelet: ",
				"PIDPressure=Unknown Kubelet: "}, ""},
		"one that never reported": {newNode("n"), true, []string{"Ready" + never, "MemoryPressure" + never,
			"DiskPressure" + never, "PIDPressure" + never}, ""},
		"its network is not the kubelet's to tell": {newNode("n", ready("True"),
			condition(corev1.NodeNetworkUnavailable, "False")), true,
			[]string{"Ready" + stopped, "NetworkUnavailable=False Kubelet: ", "MemoryPressure" + never,
				"DiskPressure" + never, "PIDPressure" + never},
			"Normal NodeNotReady Node n status is now: NodeNotReady"},
		"said already": {node: newNode("n", ready("Unknown"), condition(corev1.NodeMemoryPressure, "Unknown"),
			condition(corev1.NodeDiskPressure, "Unknown"), condition(corev1.NodePIDPressure, "Unknown")), silent: true},
	} {
		t.Run(name, func(t *testing.T) {
			before := test.node.DeepCopy()
			plan := Decide(Input{Now: start, Node: test.node, Standing: Standing{Silent: test.silent}})
			var got []string
			for _, c := range plan.Conditions {
				got = append(got, fmt.Sprintf("%s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message))
				since, heartbeat := start, test.node.CreationTimestamp.Time
				if at := slices.IndexFunc(before.Status.Conditions, func(b corev1.NodeCondition) bool {
					return b.Type == c.Type
				}); at >= 0 {
					was := before.Status.Conditions[at]
					heartbeat = was.LastHeartbeatTime.Time
					if was.Status == c.Status {
						since = was.LastTransitionTime.Time
					}
				}
				if !c.LastTransitionTime.Time.Equal(since) || !c.LastHeartbeatTime.Time.Equal(heartbeat) {
					t.Errorf("%s since %v, heard %v; want %v, %v", c.Type, c.LastTransitionTime, c.LastHeartbeatTime,
						since, heartbeat)
				}
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
			event := ""
			if plan.Event != nil {
				event = plan.Event.Type + " " + plan.Event.Reason + " " + plan.Event.Message
			}
			if event != test.event {
				t.Errorf("event %q, want %q", event, test.event)
			}
			if plan.Conditions != nil && plan.Retaint {
				t.Error("taints follow from conditions that are not written yet")
			}
		})
	}
}

// POD-080 SAF-179: the Pods of a lost node do not serve any more; those of another one tell so themselves.
func TestPodsOfALostNode(t *testing.T) {
	pod := func(name string, status corev1.ConditionStatus) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if status != "" {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: status}}
		}
		return p
	}
	pods := []*corev1.Pod{pod("serves", "True"), pod("starts", "False"), pod("new", "")}
	lost := []nodeOption{ready("Unknown"), condition(corev1.NodeMemoryPressure, "Unknown"),
		condition(corev1.NodeDiskPressure, "Unknown"), condition(corev1.NodePIDPressure, "Unknown")}
	for name, test := range map[string]struct {
		node   *corev1.Node
		silent bool
		want   string
	}{
		"lost":                 {newNode("n", lost...), true, "serves"},
		"heard of again":       {newNode("n", lost...), false, ""},
		"not ready, but heard": {newNode("n", ready("False")), false, ""},
		"ready":                {newNode("n", ready("True")), false, ""},
	} {
		var got []string
		for _, p := range Decide(Input{Now: start, Node: test.node, Standing: Standing{Silent: test.silent},
			Pods: pods}).NotReady {
			got = append(got, p.Name)
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("%s: %v are not ready, want %q", name, got, test.want)
		}
	}
}

func TestZones(t *testing.T) {
	for name, test := range map[string]struct {
		ready, notReady int
		state           zoneState
		pause           time.Duration // 0: none is given up
	}{
		"all in order":                           {20, 0, normal, 10 * time.Second},
		"nobody":                                 {0, 0, normal, 10 * time.Second},
		"one of 20":                              {19, 1, normal, 10 * time.Second},
		"two of two":                             {0, 2, fullDisruption, 10 * time.Second},
		"two of three are too few to tell":       {1, 2, normal, 10 * time.Second},
		"three of five":                          {2, 3, partialDisruption, 0},
		"54 of 100":                              {46, 54, normal, 10 * time.Second},
		"55 of 100":                              {45, 55, partialDisruption, 100 * time.Second},
		"11 of 20, a small zone":                 {9, 11, partialDisruption, 0},
		"28 of 50 is still a small zone":         {22, 28, partialDisruption, 0},
		"29 of 51 is a large one":                {22, 29, partialDisruption, 100 * time.Second},
		"all of a zone, while others are there":  {0, 100, fullDisruption, 10 * time.Second},
		"all of a small one, the same":           {0, 1, fullDisruption, 10 * time.Second},
		"nearly all of a large one":              {1, 99, partialDisruption, 100 * time.Second},
		"a third of a small zone is no disaster": {6, 3, normal, 10 * time.Second},
	} {
		settings := DefaultSettings()
		c := census{test.ready, test.notReady}
		if got := c.state(settings.UnhealthyZone); got != test.state {
			t.Errorf("%s: %s, want %s", name, got, test.state)
		}
		if pause, moves := settings.pause(c); pause != test.pause || moves != (test.pause > 0) {
			t.Errorf("%s: one per %v (%v), want %v", name, pause, moves, test.pause)
		}
	}
	never := Settings{EvictionRate: 0, UnhealthyZone: 0.55}
	if _, moves := never.pause(census{19, 1}); moves {
		t.Error("nodes are given up at a rate of 0")
	}
}

func TestZoneOf(t *testing.T) {
	label := func(key, value string) nodeOption {
		return func(n *corev1.Node) { metav1.SetMetaDataLabel(&n.ObjectMeta, key, value) }
	}
	region, zone := label("topology.kubernetes.io/region", "a"), label("topology.kubernetes.io/zone", "b")
	other := label("topology.kubernetes.io/zone", "ab")
	seen := map[string]string{}
	for name, node := range map[string]*corev1.Node{"none": newNode("n"), "region": newNode("n", region),
		"zone": newNode("n", zone), "both": newNode("n", region, zone), "other": newNode("n", other)} {
		if known, twice := seen[zoneOf(node)]; twice {
			t.Errorf("%s and %s are one zone", known, name)
		}
		seen[zoneOf(node)] = name
	}
	if zoneOf(newNode("n", zone, label("other", "x"))) != zoneOf(newNode("m", zone)) {
		t.Error("the zone depends on more than its labels")
	}
}

func TestSettings(t *testing.T) {
	defaults := DefaultSettings()
	if want := (Settings{50 * time.Second, time.Minute, 0.1, 0.01, 50, 0.55}); defaults != want {
		t.Errorf("the defaults are %+v, want %+v", defaults, want)
	}
	if err := defaults.Validate(); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func(*Settings){
		"--node-monitor-grace-period: 999ms is less than 1s": func(s *Settings) {
			s.MonitorGrace = 999 * time.Millisecond
		},
		"--node-startup-grace-period: 0s is less than 1s":   func(s *Settings) { s.StartupGrace = 0 },
		"--node-eviction-rate: -1 is less than 0":           func(s *Settings) { s.EvictionRate = -1 },
		"--secondary-node-eviction-rate: -1 is less than 0": func(s *Settings) { s.SecondaryEvictionRate = -1 },
		"--large-cluster-size-threshold: -1 is less than 0": func(s *Settings) { s.LargeZone = -1 },
		"--unhealthy-zone-threshold: 1.1 is not between 0 and 1": func(s *Settings) {
			s.UnhealthyZone = 1.1
		},
	} {
		s := DefaultSettings()
		change(&s)
		if err := s.Validate(); err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}
