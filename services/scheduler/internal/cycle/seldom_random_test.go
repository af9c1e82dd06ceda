package cycle_test

import (
	"fmt"
	"math/rand/v2"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// seldom makes what few nodes and Pods have, from a stream of its own: histories without it stay what they were.
type seldom struct{ *generator }

func newSeldom(seed uint64) *seldom {
	return &seldom{&generator{Rand: rand.New(rand.NewPCG(seed, 11))}}
}

// amounts returns quantities of some resources, more or less of each.
func (g *seldom) amounts(percent int) corev1.ResourceList {
	out := corev1.ResourceList{}
	for _, of := range []struct {
		name  corev1.ResourceName
		sizes []string
	}{
		{corev1.ResourceCPU, []string{"50m", "200m", "900m"}},
		{corev1.ResourceMemory, []string{"32Mi", "200Mi", "900Mi"}},
		{"hugepages-2Mi", []string{"2Mi", "8Mi"}},
	} {
		if size := pick(g.generator, of.sizes...); g.chance(percent) {
			out[of.name] = resource.MustParse(size)
		}
	}
	return out
}

func (g *seldom) node(n *corev1.Node) {
	if g == nil {
		return
	}
	if g.chance(60) {
		n.Labels["cores"] = pick(g.generator, "2", "4", "04", "16", "many")
	}
	if g.chance(25) {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "load",
			Value: pick(g.generator, "3", "5", "05", "70", "-2", "high"),
			Effect: pick(g.generator, corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule,
				corev1.TaintEffectPreferNoSchedule)})
	}
	if g.chance(60) {
		n.Status.Allocatable["hugepages-2Mi"] = resource.MustParse(pick(g.generator, "8Mi", "32Mi"))
	}
}

func (g *seldom) pod(p *corev1.Pod) {
	if g == nil {
		return
	}
	for i := range p.Spec.Containers {
		p.Spec.Containers[i].Name = fmt.Sprintf("c%d", i)
		if g.chance(10) {
			p.Spec.Containers[i].Resources.Requests["hugepages-2Mi"] = resource.MustParse("4Mi")
		}
	}
	for i := range p.Spec.InitContainers {
		p.Spec.InitContainers[i].Name = fmt.Sprintf("i%d", i)
	}
	if g.chance(15) {
		p.Spec.Overhead = g.amounts(50)
	}
	if g.chance(15) {
		p.Spec.Resources = &corev1.ResourceRequirements{Requests: g.whole(p)}
	}
	if g.chance(20) {
		g.numbered(p)
	}
	if g.chance(40) {
		t := corev1.Toleration{Key: "load", Operator: pick(g.generator, corev1.TolerationOpGt, corev1.TolerationOpLt),
			Value: pick(g.generator, "-2", "3", "5", "60", "08", "few")}
		t.Effect = pick(g.generator, "", corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule)
		p.Spec.Tolerations = append(p.Spec.Tolerations, t)
	}
	if p.Namespace == "default" && g.chance(10) {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "own", VolumeSource: corev1.VolumeSource{
			Ephemeral: &corev1.EphemeralVolumeSource{}}})
	}
}

// whole is what a Pod asks for as a whole: as the API server defaults it, no less than what its containers do.
func (g *seldom) whole(p *corev1.Pod) corev1.ResourceList {
	list := g.amounts(50)
	for _, c := range append(p.Spec.Containers, p.Spec.InitContainers...) {
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, "hugepages-2Mi"} {
			if quantity, asks := c.Resources.Requests[name]; asks {
				sum := list[name]
				sum.Add(quantity)
				list[name] = sum
			}
		}
	}
	if len(list) == 0 {
		list[corev1.ResourceCPU] = resource.MustParse("100m")
	}
	return list
}

// numbered gives the Pod terms that compare numbers.
func (g *seldom) numbered(p *corev1.Pod) {
	term := func() corev1.NodeSelectorTerm {
		t := corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "cores",
			Operator: pick(g.generator, corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt),
			Values:   []string{pick(g.generator, "0", "2", "3", "4", "15")}}}}
		if g.chance(20) {
			t.MatchExpressions = append(t.MatchExpressions, corev1.NodeSelectorRequirement{Key: "disk",
				Operator: corev1.NodeSelectorOpDoesNotExist})
		}
		return t
	}
	if p.Spec.Affinity == nil {
		p.Spec.Affinity = &corev1.Affinity{}
	}
	if p.Spec.Affinity.NodeAffinity == nil {
		p.Spec.Affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	a := p.Spec.Affinity.NodeAffinity
	if g.chance(50) {
		a.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{term()}}
		return
	}
	a.PreferredDuringSchedulingIgnoredDuringExecution = append(a.PreferredDuringSchedulingIgnoredDuringExecution,
		corev1.PreferredSchedulingTerm{Weight: 1 + g.Int32N(100), Preference: term()})
}

// resizeStep asks for more or less for a Pod with a node, or lets the node answer.
func (w *world) resizeStep() {
	g := w.gen.seldom
	if !g.chance(30) {
		return
	}
	uid, ok := anyKey(g.generator, w.slow.Pods)
	if !ok || w.flying[uid] != nil {
		return
	}
	p := w.slow.Pods[uid].DeepCopy()
	if g.chance(50) {
		c := pick(g.generator, p.Spec.Containers...)
		for name, quantity := range g.amounts(60) {
			c.Resources.Requests[name] = quantity
		}
	}
	g.answer(p)
	w.slow.Pods[uid] = p
	w.fast.SetPod(p, w.now)
}

// answer writes into the status of a Pod what its node makes of it.
func (g *seldom) answer(p *corev1.Pod) {
	of := func(containers []corev1.Container) (out []corev1.ContainerStatus) {
		for _, c := range containers {
			s := corev1.ContainerStatus{Name: c.Name}
			if g.chance(60) {
				s.AllocatedResources = g.amounts(70)
			}
			if g.chance(60) {
				s.Resources = &corev1.ResourceRequirements{Requests: g.amounts(70)}
			}
			out = append(out, s)
		}
		return out
	}
	p.Status.ContainerStatuses, p.Status.InitContainerStatuses = of(p.Spec.Containers), of(p.Spec.InitContainers)
	p.Status.Resources, p.Status.AllocatedResources, p.Status.Conditions = nil, nil, nil
	if g.chance(30) {
		p.Status.Resources = &corev1.ResourceRequirements{Requests: g.amounts(80)}
		p.Status.AllocatedResources = g.amounts(80)
	}
	if g.chance(40) {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodResizePending, Status: corev1.ConditionTrue,
			Reason: pick(g.generator, corev1.PodReasonDeferred, corev1.PodReasonInfeasible)}}
	}
}

// ownClaims are the claims of Pods that wait, each made for one.
func (w *world) ownClaims() (names []string) {
	for _, uid := range sorted(w.waiting) {
		for _, name := range claimNames(w.waiting[uid]) {
			if ownClaim(w.waiting[uid], name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// claimName returns the name of a claim that many Pods have, or that is made for one that waits.
func (w *world) claimName() string {
	if names := w.ownClaims(); len(names) > 0 && w.gen.seldom.chance(40) {
		return pick(w.gen, names...)
	}
	return fmt.Sprintf("c%d", w.gen.IntN(6))
}

// newClaim returns a claim; one that is made for a Pod mostly says so.
func (w *world) newClaim(name string) *corev1.PersistentVolumeClaim {
	claim := w.gen.claim(name)
	if pod, ok := strings.CutSuffix(name, "-own"); ok && w.gen.seldom.chance(90) {
		claim.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: pod, UID: types.UID(pod),
			Controller: new(true)}}
	}
	return claim
}

// makeClaim makes the claim that a Pod has alone, unless that is for later.
func (w *world) makeClaim(p *corev1.Pod) {
	for _, name := range claimNames(p) {
		if ownClaim(p, name) && w.gen.seldom.chance(70) {
			w.setClaim(w.newClaim(name))
		}
	}
}
