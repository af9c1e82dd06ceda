package cycle_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/kit/backoff"
	"keelson.dev/services/scheduler/internal/cycle"
	"keelson.dev/services/scheduler/internal/queue"
	"keelson.dev/services/scheduler/internal/rules"
	"keelson.dev/services/scheduler/internal/rules/nodeaffinity"
	"keelson.dev/services/scheduler/internal/rules/noderesourcesfit"
	"keelson.dev/services/scheduler/internal/rulestest"
)

const zone = corev1.LabelTopologyZone

// domainProfile is the rules over domains behind one over room, that has no score, and maybe one by the node's
// description.
func domainProfile(selects bool) rules.Profile {
	fit := noderesourcesfit.Rule(noderesourcesfit.Args{Weights: noderesourcesfit.DefaultWeights()})
	fit.Score = nil
	p := rules.Profile{Name: corev1.DefaultSchedulerName, Rules: append([]rules.Rule{fit},
		rulestest.DomainRules()...)}
	if selects {
		p.Rules = append(p.Rules, nodeaffinity.Rule())
	}
	return p
}

// domainWorld drives a Cycle and the reference through the same history.
type domainWorld struct {
	*history
	slow *domainCluster
}

func newDomainWorld(t *testing.T, seed uint64) *domainWorld {
	fast := cycle.New(cycle.Config{Profiles: []rules.Profile{domainProfile(seed%2 == 0)}, Seed: seed,
		Backoff: backoff.Policy{First: time.Second, Max: 10 * time.Second}})
	w := &domainWorld{slow: &domainCluster{Nodes: map[string]*corev1.Node{}, Pods: map[types.UID]*corev1.Pod{},
		Selects: seed%2 == 0}}
	w.history = newHistory(t, fast, rand.New(rand.NewPCG(seed, 5)), w.slow.Nodes, w.slow.Pods)
	w.now = start
	w.fast.Lead(corev1.DefaultSchedulerName, true, w.now)
	return w
}

func (w *domainWorld) node(name string) *corev1.Node {
	g := w.gen
	return rulestest.Node(name, rulestest.Allocatable(corev1.ResourcePods, pick(g, "2", "4", "9")),
		func(n *corev1.Node) {
			n.Labels[zone] = pick(g, "a", "b", "c")
			if g.chance(10) {
				delete(n.Labels, zone)
			}
			if g.chance(10) {
				n.Labels[corev1.LabelHostname] = "shared"
			}
			if g.chance(50) {
				n.Labels["disk"] = "ssd"
			}
		})
}

func (w *domainWorld) pod() *corev1.Pod {
	g := w.gen
	p := rulestest.Pod(fmt.Sprintf("p%d", g.pods), rulestest.Labelling("app", pick(g, "web", "db", "cache")),
		rulestest.Labelling("index", fmt.Sprint(g.pods)))
	g.pods++
	p.Namespace = pick(g, "default", "default", "default", "other")
	key, app := pick(g, zone, corev1.LabelHostname), pick(g, "web", "db", "cache")
	change := func(percent int, change func(*corev1.Pod)) {
		if g.chance(percent) {
			change(p)
		}
	}
	change(20, rulestest.Spreading(key, 1+g.Int32N(2), corev1.DoNotSchedule, "app", p.Labels["app"]))
	change(10, rulestest.Spreading(zone, 1, corev1.DoNotSchedule, "app", app))
	change(15, rulestest.Spreading(key, 1, corev1.ScheduleAnyway, "app", app))
	change(10, rulestest.AntiAffinity(key, "app", app))
	change(10, rulestest.AntiAffinity(corev1.LabelHostname, "app", p.Labels["app"]))
	change(10, rulestest.Affinity(key, "app", app))
	change(5, rulestest.Affinity(key, "index", fmt.Sprint(g.IntN(g.pods))))
	change(15, rulestest.Selecting("disk", "ssd"))
	change(10, rulestest.Selecting(corev1.LabelHostname, pick(g, "n1", "n2", "shared")))
	return p
}

// relabelled returns the Pod after what users and controllers do to one that is there.
func (w *domainWorld) relabelled(p *corev1.Pod) *corev1.Pod {
	p = p.DeepCopy()
	if w.gen.chance(30) && p.Spec.NodeName != "" {
		p.DeletionTimestamp = &metav1.Time{Time: w.now}
		return p
	}
	rulestest.Labelling("app", pick(w.gen, "web", "db", "cache"))(p)
	return p
}

func (w *domainWorld) step() {
	g := w.gen
	switch g.IntN(14) {
	case 0, 1:
		name := fmt.Sprintf("n%d", g.IntN(9))
		w.slow.Nodes[name] = w.node(name)
		w.fast.SetNode(w.slow.Nodes[name])
	case 2:
		if name, ok := anyKey(g, w.slow.Nodes); ok && g.chance(50) {
			delete(w.slow.Nodes, name)
			w.fast.RemoveNode(name)
		}
	case 3, 4, 5:
		if uid, ok := anyKey(g, w.slow.Pods); ok {
			w.remove(w.slow.Pods[uid])
		}
	case 6:
		if uid, ok := anyKey(g, w.waiting); ok {
			w.remove(w.waiting[uid])
		}
	case 7: // bound by hand
		p := w.pod()
		p.Spec.NodeName = fmt.Sprintf("n%d", g.IntN(10))
		w.bind(p)
	case 8:
		if uid, ok := anyKey(g, w.slow.Pods); ok && w.flying[uid] == nil {
			w.bind(w.relabelled(w.slow.Pods[uid]))
		}
	case 9:
		if uid, ok := anyKey(g, w.waiting); ok {
			w.waiting[uid] = w.relabelled(w.waiting[uid])
			w.fast.SetPod(w.waiting[uid], w.now)
		}
	case 10:
		w.changeFlying()
	default:
		p := w.pod()
		w.waiting[p.UID] = p
		w.fast.SetPod(p, w.now)
	}
}

// changeFlying lets the API answer a binding, or relabels the Pod before.
func (w *domainWorld) changeFlying() {
	uid, ok := anyKey(w.gen, w.flying)
	if !ok {
		return
	}
	p := w.flying[uid]
	switch w.gen.IntN(4) {
	case 0:
		w.refuse(p)
	case 1:
		again := p.DeepCopy()
		rulestest.Labelling("app", "web")(again)
		w.flying[uid], w.slow.Pods[uid] = again, again
		unbound := again.DeepCopy()
		unbound.Spec.NodeName = ""
		w.fast.SetPod(unbound, w.now)
	default:
		w.bind(p)
	}
}

// drain decides until there is nothing to decide, and compares each verdict.
func (w *domainWorld) drain() {
	for {
		v, ok := w.fast.Next(w.now)
		if !ok {
			return
		}
		w.check(v)
		if v.Node == "" {
			continue
		}
		w.place(v)
	}
}

func (w *domainWorld) check(v cycle.Verdict) {
	w.t.Helper()
	want := w.slow.Judge(v.Pod)
	if v.Node == "" {
		got := map[string]int{}
		for _, r := range v.Reasons {
			got[r.Text] = r.Nodes
		}
		if len(want.Scores) > 0 || !maps.Equal(got, want.Refusals) {
			w.t.Fatalf("pod %s is refused for %v, want %v and nodes %v", v.Pod.Name, got, want.Refusals, want.Scores)
		}
		return
	}
	best, _ := want.Best()
	score, feasible := want.Scores[v.Node]
	if !feasible || score != best || v.Score != best || v.Feasible != len(want.Scores) {
		w.t.Fatalf("pod %s is placed on %s for %d, one of %d nodes, want the best of %v", v.Pod.Name, v.Node, v.Score,
			v.Feasible, want.Scores)
	}
}

// checkNoneForgotten drains, with time enough for every delay, and sees that no Pod waits in vain. A Pod that is placed
// may help one that was tried just before and is delayed for it, so this takes as many rounds as place Pods.
func (w *domainWorld) checkNoneForgotten() {
	w.t.Helper()
	for placed := -1; placed != len(w.slow.Pods); {
		placed = len(w.slow.Pods)
		w.drain()
		w.now = w.now.Add(time.Minute) // longer than any delay, shorter than queue.MaxUnschedulable
		w.drain()
	}
	for _, uid := range sorted(w.waiting) {
		if v := w.slow.Judge(w.waiting[uid]); len(v.Scores) > 0 {
			w.t.Fatalf("pod %s waits although %v can take it", uid, v.Scores)
		}
	}
	if n := w.fast.Depths()[queue.Unschedulable].Pods; n != len(w.waiting) {
		w.t.Fatalf("%d Pods are unschedulable, want %d", n, len(w.waiting))
	}
}

// Rules over domains agree with looking at every node and Pod through random histories, on feasible nodes, scores and
// reasons, and every change of a domain requeues the Pods that it helps. When all Pods are gone no term is left.
func TestDomainsAgreeWithReference(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			w := newDomainWorld(t, seed)
			for range 250 {
				w.step()
				if w.gen.chance(50) {
					w.drain()
				}
				if w.gen.chance(20) {
					w.checkNoneForgotten()
				}
			}
			w.checkNoneForgotten()
			for _, pods := range []map[types.UID]*corev1.Pod{w.waiting, w.slow.Pods} {
				for _, p := range slices.Collect(maps.Values(pods)) {
					w.remove(p)
				}
			}
			w.drain()
			if n := w.fast.State().Terms(); n != 0 {
				t.Errorf("%d terms are left", n)
			}
		})
	}
}
