package cycle_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/scheduler/internal/cycle"
)

// contest drives a Cycle and the reference through the same preemptions.
type contest struct {
	t      *testing.T
	gen    *generator
	seed   uint64
	fast   *cycle.Cycle
	slow   *rivals
	now    time.Time
	judged int
	kind
}

// kind is what a contest is about.
type kind struct {
	domains bool // Pods look at domains
	across  bool // victims may be on other nodes
	units   bool // Pods run that are evicted together or not at all
	// profile is the seed of what the profile says of rules: see settingsOf. 0 is the default.
	profile uint64
}

func newContest(t *testing.T, seed uint64, of kind) *contest {
	settings, otherwise := settingsOf(t, of.profile)
	settings.Profiles[0].PreemptsAcross = of.across
	slow := &rivals{cluster: newCluster(), across: of.across, nominees: map[types.UID]*corev1.Pod{},
		budgets: map[string]*policyv1.PodDisruptionBudget{}, groups: map[string]*schedulingv1beta1.PodGroup{}}
	slow.otherwise = otherwise
	c := &contest{t: t, seed: seed, kind: of, now: start, gen: &generator{Rand: rand.New(rand.NewPCG(seed, 2))},
		slow: slow}
	c.fast = cycle.New(cycle.Config{Profiles: settings.Profiles, Backoff: settings.Backoff, Seed: seed})
	c.fast.Lead(corev1.DefaultSchedulerName, true, start)
	for range 2 + c.gen.IntN(5) {
		c.node(fmt.Sprintf("n%d", c.gen.nodes))
		c.gen.nodes++
	}
	c.storage()
	if of.units {
		c.group("v")
		c.group("w")
	}
	for range 4 * c.gen.nodes {
		c.run()
	}
	return c
}

// storage makes claims that have their volumes, some of them for one Pod, and nodes that take few of these.
func (c *contest) storage() {
	for i := range 6 {
		name := fmt.Sprintf("c%d", i)
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name,
			UID: types.UID(name), Annotations: map[string]string{"pv.kubernetes.io/bind-completed": "yes"}}}
		claim.Spec.VolumeName, claim.Spec.StorageClassName = "pv-"+name, new(string)
		claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{pick(c.gen, corev1.ReadWriteMany,
			corev1.ReadWriteMany, corev1.ReadWriteOncePod)}
		pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-" + name}}
		pv.Spec.PersistentVolumeSource, pv.Labels = c.gen.source(name), c.gen.zones()
		c.slow.Claims[name], c.slow.Volumes[pv.Name] = claim, pv
		c.fast.SetClaim(claim)
		c.fast.SetVolume(pv)
	}
	for i := range c.gen.nodes {
		c.limits(fmt.Sprintf("n%d", i))
	}
}

func (c *contest) limits(node string) { setLimits(c.gen, c.fast, &c.slow.storage, node) }

func (c *contest) node(name string) {
	n := c.gen.node(name)
	if c.gen.chance(60) {
		n.Spec.Taints, n.Spec.Unschedulable = nil, false
	}
	c.slow.Nodes[name] = n
	c.fast.SetNode(n)
}

// pod returns a Pod of some priority, whose claims have their volumes.
func (c *contest) pod(lowest int) *corev1.Pod {
	p := c.gen.pod()
	priority := int32(lowest + c.gen.IntN(4))
	p.Spec.Priority = &priority
	if p.Spec.Volumes = nil; p.Namespace == "default" && c.gen.chance(30) {
		p.Spec.Volumes = c.gen.claims()
	}
	if !c.domains {
		p.Spec.TopologySpreadConstraints = nil
		if a := p.Spec.Affinity; a != nil {
			a.PodAffinity, a.PodAntiAffinity = nil, nil
		}
	}
	if c.gen.chance(50) {
		p.Labels = map[string]string{"app": pick(c.gen, "x", "y")}
	}
	return p
}

// run puts a Pod onto a node, whether it fits there or not.
func (c *contest) run() {
	p := c.pod(-2)
	p.Spec.NodeName = fmt.Sprintf("n%d", c.gen.IntN(c.gen.nodes))
	if c.gen.chance(80) {
		p.Status.StartTime = &metav1.Time{Time: start.Add(time.Duration(c.gen.IntN(3)) * time.Second)}
	}
	if c.units && p.Namespace == "default" && c.gen.chance(30) {
		inGroup(pick(c.gen, "v", "w"))(p)
	}
	c.set(p)
}

// group sets the group of some Pods that run, which mostly go together.
func (c *contest) group(name string) {
	g := gangOf(name, 1, ofPriority(int32(c.gen.IntN(4)-2)))
	if c.gen.chance(90) {
		together(g)
	}
	c.slow.groups[name] = g
	c.fast.SetPodGroup(g, c.now)
}

func (c *contest) set(p *corev1.Pod) {
	c.slow.Pods[p.UID] = p
	c.fast.SetPod(p, c.now)
}

// step changes something of the cluster.
func (c *contest) step() {
	if c.units && c.gen.chance(15) {
		name := pick(c.gen, "v", "w")
		if g := c.slow.groups[name]; g != nil && c.gen.chance(20) {
			delete(c.slow.groups, name)
			c.fast.RemovePodGroup(g)
			return
		}
		c.group(name)
		return
	}
	switch c.gen.IntN(8) {
	case 6, 7:
		c.limits(fmt.Sprintf("n%d", c.gen.IntN(c.gen.nodes)))
	case 0:
		c.node(fmt.Sprintf("n%d", c.gen.IntN(c.gen.nodes)))
	case 1, 2:
		c.run()
	case 3:
		if uid, ok := anyKey(c.gen, c.slow.Pods); ok {
			c.fast.RemovePod(c.slow.Pods[uid])
			delete(c.slow.Pods, uid)
		}
	case 4:
		if uid, ok := anyKey(c.gen, c.slow.nominees); ok {
			c.fast.RemovePod(c.slow.nominees[uid])
			delete(c.slow.nominees, uid)
		}
	default:
		b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default",
			Name: pick(c.gen, "a", "b")}, Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{}}}
		if c.gen.chance(80) {
			b.Spec.Selector.MatchLabels = map[string]string{"app": pick(c.gen, "x", "y")}
		}
		b.Status.DisruptionsAllowed = c.gen.Int32N(3)
		c.slow.budgets[b.Name] = b
		c.fast.SetBudget(b)
		if c.gen.chance(30) {
			delete(c.slow.budgets, b.Name)
			c.fast.RemoveBudget(b)
		}
	}
}

// drain decides until nothing is left.
func (c *contest) drain() {
	for {
		v, ok := c.fast.Next(c.now)
		if !ok {
			return
		}
		if v.Node != "" {
			c.checkPlaced(v)
			placed := v.Pod.DeepCopy()
			placed.Spec.NodeName = v.Node
			delete(c.slow.nominees, placed.UID)
			c.displace(placed)
			c.set(placed)
			continue
		}
		c.check(v)
		for _, victim := range victims(v) {
			c.set(leaving(victim))
		}
		if v.Plan != nil {
			for _, uid := range v.Plan.Displaced {
				delete(c.slow.nominees, uid)
			}
			nominee := v.Pod.DeepCopy()
			nominee.Spec.NodeName = v.Nominated
			c.slow.nominees[nominee.UID] = nominee
			c.fast.Evicted(v.Pod.UID, nil, nil, c.now)
			if c.slow.across { // the reference knows nothing of how these keep others away
				c.fast.RemovePod(v.Pod)
				delete(c.slow.nominees, v.Pod.UID)
			}
		} else if v.Nominated == "" {
			delete(c.slow.nominees, v.Pod.UID)
		}
	}
}

// displace takes their nominations from the Pods that the placed one outranks on its node, where the Cycle did.
func (c *contest) displace(placed *corev1.Pod) {
	for uid, other := range c.slow.nominees {
		if other.Spec.NodeName == placed.Spec.NodeName && rank(other) < rank(placed) && c.fast.Nominated(uid) == "" {
			delete(c.slow.nominees, uid)
		}
	}
}

// checkPlaced sees that the node can take the Pod. On the node that it was nominated for, the room is its own, and the
// other nominees wait for those who leave; these may also be why it fits, by what they share with it.
func (c *contest) checkPlaced(v cycle.Verdict) {
	c.t.Helper()
	p, n := v.Pod, c.slow.Nodes[v.Node]
	var lacks []*corev1.Pod
	if own := c.slow.nominees[p.UID]; own != nil && own.Spec.NodeName == v.Node {
		if reasons := c.slow.without(p, "", nil).refusals(p, n); len(reasons) > 0 {
			c.t.Fatalf("seed %d: pod %s is placed on %s, which it is nominated for: %v", c.seed, p.Name, v.Node,
				reasons)
		}
		for _, other := range c.slow.on(n) {
			if other.DeletionTimestamp != nil {
				lacks = append(lacks, other)
			}
		}
	}
	if reasons := c.slow.refuses(p, n, lacks); len(reasons) > 0 && len(c.slow.refuses(p, n, nil)) > 0 {
		c.t.Fatalf("seed %d: pod %s is placed on %s: %v", c.seed, p.Name, v.Node, reasons)
	}
}

func victims(v cycle.Verdict) []*corev1.Pod {
	if v.Plan == nil {
		return nil
	}
	return v.Plan.Victims
}

// check holds a verdict without a node against the reference.
func (c *contest) check(v cycle.Verdict) {
	c.t.Helper()
	if own := c.slow.nominees[v.Pod.UID]; own != nil && v.Plan == nil && v.Nominated != "" {
		for _, other := range c.slow.Pods {
			if other.Spec.NodeName == v.Nominated && other.DeletionTimestamp != nil && rank(other) < rank(v.Pod) {
				return
			}
		}
		c.t.Fatalf("seed %d: pod %s waits on %s for nobody: %s", c.seed, v.Pod.Name, v.Nominated, v.Message())
	}
	c.judged++
	got := v.Preemption
	if v.Plan != nil {
		got = fmt.Sprint(v.Nominated, names(v.Plan.Victims), v.Plan.Violations)
	}
	if want := c.slow.expect(v.Pod); got != want {
		c.t.Fatalf("seed %d: pod %s of priority %d: %s, want %s", c.seed, v.Pod.Name, rank(v.Pod), got, want)
	}
}

// The fast preemption agrees with the slow, obvious one on node, victims, violated budgets and words, through random
// histories with nominations, budgets and Pods that leave, under profiles of all sorts. KEELSON_PREEMPTIONS asks for
// more than the usual 10,000, KEELSON_SEED for others. SCH-035, SCH-036, SCH-037, SCH-038, SCH-040, SCH-052, SCH-056,
// SCH-058, SCH-059, SCH-060, SCH-061, SCH-063
func TestPreemptionAgreesWithReference(t *testing.T) {
	compete(t, usualPreemptions, func(part uint64) kind { return kind{domains: part%2 == 1, units: part%4 > 1} })
}

// So does the preemption across nodes. SCH-038
func TestPreemptionAcrossNodesAgreesWithReference(t *testing.T) {
	compete(t, usualPreemptions*2/5, func(part uint64) kind {
		return kind{domains: true, across: true, units: part%2 == 1}
	})
}

func compete(t *testing.T, wanted int, of func(part uint64) kind) {
	wanted, first := longer(t, "KEELSON_PREEMPTIONS", wanted), uint64(longer(t, "KEELSON_SEED", 0))
	const parts = 8
	for part := range uint64(parts) {
		t.Run(fmt.Sprint(part), func(t *testing.T) {
			t.Parallel()
			for judged, seed := 0, first+part; judged < wanted/parts; seed += parts {
				kind := of(part)
				kind.profile = seed / parts
				judged += compare(t, seed, kind).judged
				if t.Failed() {
					return
				}
			}
		})
	}
}

// compare plays one history and returns it.
func compare(t *testing.T, seed uint64, of kind) *contest {
	c := newContest(t, seed, of)
	for range 12 {
		for range 1 + c.gen.IntN(3) {
			c.fast.SetPod(c.pod(0), c.now)
		}
		c.drain()
		c.step()
		c.now = c.now.Add(time.Minute)
	}
	return c
}

// Histories in which the two differed once.
func TestPreemptionOfEarlierDifferences(t *testing.T) {
	compare(t, 644, kind{})               // a Pod held a volume by its nomination alone when another came that has it
	compare(t, 3669, kind{domains: true}) // a node is refused by one rule beside its nominee, and by another without it
}
