package simulate

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/scheduler/internal/config"
	"keelson.dev/services/scheduler/internal/cycle"
	"keelson.dev/services/scheduler/internal/groups"
)

func node(name, zone, cpu string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
		corev1.LabelHostname: name, corev1.LabelTopologyZone: zone}},
		Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu),
			corev1.ResourceMemory: resource.MustParse("64Gi"), corev1.ResourcePods: resource.MustParse("20")}}}
}

// running returns a Pod on a node, of an owner where one is named as KIND/NAME.
func running(name, on, cpu, owner string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)},
		Spec: corev1.PodSpec{NodeName: on, Containers: []corev1.Container{{Name: "c",
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse(cpu)}}}}}}
	if kind, of, ok := strings.Cut(owner, "/"); ok {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: of,
			Controller: new(true)}}
	}
	return p
}

func documents(t *testing.T, manifest string) []document {
	t.Helper()
	out, err := parse("x.yaml", strings.NewReader(manifest))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// deployment returns the manifest of a Deployment.
func deployment(name string, replicas int, cpu string) string {
	return fmt.Sprintf(`---
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s}
spec:
  replicas: %[2]d
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec: {containers: [{name: c, image: x, resources: {limits: {cpu: %[3]s}}}]}
`, name, replicas, cpu)
}

// lines says of each workload what became of its Pods.
func lines(r Report) (out []string) {
	for _, w := range r.Workloads {
		text := fmt.Sprintf("%s %s %s %d/%d %s", w.From, w.Kind, w.Name, w.Fit, len(w.Pods), w.nodes())
		for _, p := range w.Pods {
			if p.Message != "" {
				text += ": " + p.Message
				break
			}
		}
		out = append(out, text)
	}
	return out
}

func TestAnswer(t *testing.T) {
	objects := func(more ...runtime.Object) []runtime.Object {
		return append([]runtime.Object{node("a", "x", "4"), node("b", "y", "4")}, more...)
	}
	tainted := node("t", "x", "4")
	tainted.Spec.Taints = []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoSchedule}}
	daemons := &documents(t, `{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: d, namespace: default},
  spec: {selector: {}, template: {spec: {containers: [{name: c, resources: {requests: {cpu: "1"}}}]}}}}`)[0].object
	for name, test := range map[string]struct {
		mesh   []runtime.Object
		asks   question
		want   []string
		totals string // nodes, preempted, lost, ignored
	}{
		"all fit": {objects(), question{documents: documents(t, deployment("web", 4, "2"))},
			[]string{"manifest Deployment web 4/4 a (2), b (2)"}, "2 [] [] []"},
		"one too many": {objects(), question{documents: documents(t, deployment("web", 5, "2"))},
			[]string{"manifest Deployment web 4/5 a (2), b (2): 0/2 nodes are available: 2 Insufficient cpu. " +
				"preemption: 0/2 nodes are available: 2 No preemption victims found for incoming pod."}, "2 [] [] []"},
		"a lost node": {objects(running("r", "a", "2", "ReplicaSet/r"), running("big", "a", "3", "ReplicaSet/big"),
			running("d", "a", "1", "DaemonSet/d"), running("bare", "a", "1", ""), running("stays", "b", "1", "")),
			question{withoutNodes: []string{"a"}},
			[]string{"lost node ReplicaSet r 1/1 b", "lost node ReplicaSet big 0/1 -: 0/1 nodes are available: " +
				"1 Insufficient cpu. preemption: 0/1 nodes are available: 1 No preemption victims found for incoming " +
				"pod."},
			"1 [] [default/bare] []"},
		"a lost zone": {objects(running("r", "b", "4", "ReplicaSet/r")), question{withoutZones: []string{"y"}},
			[]string{"lost node ReplicaSet r 1/1 a"}, "1 [] [] []"},
		"what waits fits on a new node": {objects(running("w", "", "8", "ReplicaSet/w"), *daemons),
			question{added: []addition{{node: node("n", "z", "9"), count: 1}}},
			[]string{"new node DaemonSet d 1/1 n", "waiting ReplicaSet w 1/1 n"}, "3 [] [] []"},
		"two new nodes": {objects(running("w", "", "8", ""), running("v", "", "8", "")),
			question{added: []addition{{node: node("n", "z", "8"), count: 2}}},
			[]string{"waiting Pod w 1/1 n-1", "waiting Pod v 1/1 n-2"}, "4 [] [] []"},
		"the more important first": {objects(running("r", "a", "4", "ReplicaSet/r")), question{documents: documents(t, `
apiVersion: v1
kind: Pod
metadata: {name: p}
spec: {priorityClassName: high, containers: [{name: c, resources: {requests: {cpu: "4"}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: q}
spec: {priorityClassName: high, containers: [{name: c, resources: {requests: {cpu: "4"}}}]}
---
{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: 7}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: m}}
---
{apiVersion: example.com/v1, kind: Thing, metadata: {name: m}}
`)}, []string{"manifest Pod p 1/1 b", "manifest Pod q 1/1 a", "preempted ReplicaSet r 0/1 -: " +
			"0/2 nodes are available: 2 Insufficient cpu. preemption: 0/2 nodes are available: " +
			"2 No preemption victims found for incoming pod."},
			"2 [{default/r default/q a}] [] [ConfigMap m Thing]"},
		"DaemonSets go where they may": {append(objects(), tainted),
			question{documents: []document{{object: *daemons}}},
			[]string{"manifest DaemonSet d 2/2 a, b"}, "3 [] [] []"},
		"gates and other schedulers": {objects(), question{documents: documents(t, `
{apiVersion: v1, kind: Pod, metadata: {name: g}, spec: {schedulingGates: [{name: wait}], containers: [{name: c}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: o}, spec: {schedulerName: other, containers: [{name: c}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: named}, spec: {nodeName: b, containers: [{name: c}]}}
`)}, []string{"manifest Pod g 0/1 -: held by scheduling gates: wait",
			`manifest Pod o 0/1 -: no profile of the scheduler is named "other"`, "manifest Pod named 1/1 b"},
			"2 [] [] []"},
		"Jobs run as many as they may at a time": {objects(), question{documents: documents(t, `
{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {parallelism: 5, completions: 3, template: {spec: {
  containers: [{name: c}]}}}}
---
{apiVersion: batch/v1, kind: CronJob, metadata: {name: c}, spec: {jobTemplate: {spec: {template: {spec: {
  containers: [{name: c, resources: {requests: {cpu: "9"}}}]}}}}}}
`)}, []string{"manifest Job j 3/3 b (2), a", "manifest Job c 0/1 -: 0/2 nodes are available: 2 Insufficient cpu. " +
			"preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."}, "2 [] [] []"},
		"claims of a set without a class": {objects(), question{documents: documents(t, `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  selector: {matchLabels: {app: db}}
  template: {metadata: {labels: {app: db}}, spec: {containers: [{name: c}]}}
  volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce]}}]
`)}, []string{"manifest StatefulSet db 0/1 -: 0/2 nodes are available: pod has unbound immediate " +
			"PersistentVolumeClaims. preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."},
			"2 [] [] []"},
	} {
		t.Run(name, func(t *testing.T) {
			test.asks.namespace = "default"
			report, err := answer(test.mesh, test.asks, config.Default())
			if err != nil {
				t.Fatal(err)
			}
			if got := lines(report); !slices.Equal(got, test.want) {
				t.Errorf("says\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
			var taken []string
			for _, v := range report.Preempted {
				taken = append(taken, fmt.Sprint(v))
			}
			if got := fmt.Sprint(report.Nodes, taken, report.Lost, report.Ignored); got != test.totals {
				t.Errorf("totals %s, want %s", got, test.totals)
			}
		})
	}
}

// What is said to fit is what a Cycle places in the same order on the same state, where each decision is bound before
// the next, and what is said not to fit it refuses.
func TestSimulationIsWhatTheCycleDoes(t *testing.T) {
	placed, refused := 0, 0
	for s := range uint64(60) {
		g := rand.New(rand.NewPCG(s, 9))
		objects, manifest := randomMesh(g), ""
		for i := range 2 + g.IntN(4) {
			text := deployment(fmt.Sprintf("w%d", i), 1+g.IntN(8), fmt.Sprintf("%d00m", 1+g.IntN(20)))
			if g.IntN(2) == 0 {
				text = strings.Replace(text, "spec: {containers", "spec: {topologySpreadConstraints: [{maxSkew: 1, "+
					"topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule, labelSelector: "+
					"{matchLabels: {app: "+fmt.Sprintf("w%d", i)+"}}}], containers", 1)
			}
			manifest += text
		}
		report, err := answer(objects, question{namespace: "default", documents: documents(t, manifest)},
			config.Default())
		if err != nil {
			t.Fatal(err)
		}
		want, order := map[string]string{}, map[int]string{}
		for _, w := range report.Workloads {
			for _, p := range w.Pods {
				want[p.Name], order[p.Order] = p.Node, p.Name
			}
		}
		delete(order, 0)
		c := cycleOf(t, objects, documents(t, manifest))
		names, got := []string{}, map[string]string{}
		for {
			v, ok := c.Next(time.Unix(0, 0))
			if !ok {
				break
			}
			got[v.Pod.Name] = v.Node
			if v.Node == "" {
				refused++
				continue
			}
			names, placed = append(names, v.Pod.Name), placed+1
			bound := v.Pod.DeepCopy()
			bound.Spec.NodeName = v.Node
			c.SetPod(bound, time.Unix(0, 0))
		}
		var ordered []string
		for _, i := range slices.Sorted(maps.Keys(order)) {
			ordered = append(ordered, order[i])
		}
		if !maps.Equal(got, want) || !slices.Equal(names, ordered) {
			t.Fatalf("seed %d: the simulation says\n%v in order %v\nthe Cycle does\n%v in order %v", s, want, ordered,
				got,
				names)
		}
	}
	if placed < 200 || refused < 200 {
		t.Errorf("%d Pods were placed and %d refused, too few to learn from", placed, refused)
	}
}

func randomMesh(g *rand.Rand) (objects []runtime.Object) {
	for i := range 1 + g.IntN(6) {
		n := node(fmt.Sprintf("n%d", i), string(rune('a'+g.IntN(3))), fmt.Sprint(1+g.IntN(4)))
		n.Spec.Unschedulable = g.IntN(8) == 0
		objects = append(objects, n)
		for j := range g.IntN(3) {
			objects = append(objects, running(fmt.Sprintf("p%d-%d", i, j), n.Name, "300m", ""))
		}
	}
	return objects
}

// cycleOf returns the scheduler that has seen a mesh and the Pods of manifests.
func cycleOf(t *testing.T, objects []runtime.Object, documents []document) *cycle.Cycle {
	t.Helper()
	settings := config.Default()
	c := cycle.New(cycle.Config{Profiles: settings.Profiles, Backoff: settings.Backoff, Seed: seed})
	c.Lead(corev1.DefaultSchedulerName, true, time.Time{})
	for _, o := range objects {
		switch o := o.(type) {
		case *corev1.Node:
			c.SetNode(o)
		case *corev1.Pod:
			c.SetPod(o, time.Time{})
		}
	}
	for _, d := range documents {
		d.object.(metav1.Object).SetNamespace("default")
		pods, sets, _, err := expand(d.object, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, set := range sets {
			group, _ := groups.Of(set)
			c.SetGroup(group)
		}
		for _, p := range pods {
			if err := (&mesh{}).admit(p); err != nil {
				t.Fatal(err)
			}
			c.SetPod(p, time.Time{})
		}
	}
	return c
}

// A victim on another node than the preemptor is reported with its own node.
func TestPreemptionAcrossNodes(t *testing.T) {
	settings := config.Default()
	settings.Profiles[0].PreemptsAcross = true
	low := running("low", "a", "1", "")
	low.Labels = map[string]string{"app": "x"}
	report, err := answer([]runtime.Object{node("a", "x", "2"), node("b", "x", "8"), low},
		question{namespace: "default",
			documents: documents(t, `
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  priority: 5
  containers: [{name: c, resources: {requests: {cpu: "4"}}}]
  affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [
    {topologyKey: topology.kubernetes.io/zone, labelSelector: {matchLabels: {app: x}}}]}}
`)}, settings)
	want := Preempted{Pod: "default/low", By: "default/p", Node: "a"}
	if err != nil || len(report.Preempted) != 1 || report.Preempted[0] != want ||
		lines(report)[0] != "manifest Pod p 1/1 b" {
		t.Errorf("%v, %+v, want %+v", err, report, want)
	}
}
