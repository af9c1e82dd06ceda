package cycle_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// generator makes random nodes and Pods that often collide: few sizes, few labels, few taints.
type generator struct {
	*rand.Rand
	nodes, pods int
	// seldom makes what few nodes and Pods have; nil where none has it.
	seldom *seldom
}

func (g *generator) chance(percent int) bool { return g.IntN(100) < percent }

func pick[T any](g *generator, from ...T) T { return from[g.IntN(len(from))] }

var taintKeys = []string{"dedicated", "broken"}

func (g *generator) node(name string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
		"zone": pick(g, "a", "b", "c"), corev1.LabelHostname: name,
	}}}
	if g.chance(10) {
		n.Labels[corev1.LabelHostname] = pick(g, "shared-host", name+".example")
	}
	if g.chance(80) {
		n.Labels[zone] = pick(g, "a", "b", "c")
	}
	if g.chance(30) {
		n.Labels["disk"] = pick(g, "ssd", "hdd")
	}
	n.Spec.Unschedulable = g.chance(10)
	for _, key := range taintKeys {
		if g.chance(20) {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Value: pick(g, "x", "y"), Effect: pick(g,
				corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute, corev1.TaintEffectPreferNoSchedule)})
		}
	}
	n.Status.Allocatable = corev1.ResourceList{
		corev1.ResourceCPU:              resource.MustParse(pick(g, "1", "2", "4")),
		corev1.ResourceMemory:           resource.MustParse(pick(g, "1Gi", "4Gi")),
		corev1.ResourceEphemeralStorage: resource.MustParse("10Gi"),
		corev1.ResourcePods:             resource.MustParse(pick(g, "3", "10")),
	}
	if g.chance(20) {
		n.Status.Allocatable["example.com/gpu"] = resource.MustParse(pick(g, "1", "2"))
	}
	n.Status.Images = g.images()
	g.seldom.node(n)
	return n
}

// sizes are those of the images, the same on every node.
var sizes = map[string]int64{"small:latest": 10 << 20, "app:1": 300 << 20, "example.com:5000/app:latest": 900 << 20,
	"app@sha256:12": 300 << 20, "model:latest": 3000 << 20}

func (g *generator) images() (out []corev1.ContainerImage) {
	for _, name := range slices.Sorted(maps.Keys(sizes)) {
		if g.chance(40) {
			out = append(out, corev1.ContainerImage{Names: []string{name, name + "-alias"}, SizeBytes: sizes[name]})
		}
	}
	return out
}

func (g *generator) image() string {
	return pick(g, "small", "small", "app:1", "example.com:5000/app", "app@sha256:12", "model", "nowhere")
}

func (g *generator) pod() *corev1.Pod {
	g.pods++
	name := fmt.Sprintf("p%d", g.pods)
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)}}
	if g.chance(30) {
		p.Spec.Priority = new(int32)
		*p.Spec.Priority = int32(g.IntN(3))
	}
	p.Spec.Containers = []corev1.Container{g.container()}
	if g.chance(20) {
		p.Spec.Containers = append(p.Spec.Containers, g.container())
	}
	if g.chance(20) {
		c := g.container()
		c.Ports = nil
		if g.chance(50) {
			always := corev1.ContainerRestartPolicyAlways
			c.RestartPolicy = &always
		}
		p.Spec.InitContainers = append(p.Spec.InitContainers, c)
	}
	if g.chance(20) {
		p.Spec.NodeSelector = map[string]string{"zone": pick(g, "a", "b", "c", "nowhere")}
	}
	if g.chance(30) {
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: g.affinity()}
	}
	for _, key := range taintKeys {
		if g.chance(30) {
			p.Spec.Tolerations = append(p.Spec.Tolerations, g.toleration(key))
		}
	}
	if g.chance(40) {
		p.Spec.Volumes = g.claims()
	}
	if g.chance(10) {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "image", VolumeSource: corev1.VolumeSource{
			Image: &corev1.ImageVolumeSource{Reference: g.image()}}})
	}
	if g.chance(5) {
		p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Operator: corev1.TolerationOpExists})
	}
	if g.chance(50) {
		g.spread(p)
	}
	g.belong(p)
	if g.chance(50) {
		g.sociable(p)
	}
	g.seldom.pod(p)
	return p
}

func (g *generator) toleration(key string) corev1.Toleration {
	t := corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists,
		Effect: pick(g, "", corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule)}
	if g.chance(50) {
		t.Operator, t.Value = corev1.TolerationOpEqual, pick(g, "x", "y")
	}
	return t
}

func (g *generator) container() corev1.Container {
	requests := corev1.ResourceList{}
	if g.chance(80) {
		requests[corev1.ResourceCPU] = resource.MustParse(pick(g, "100m", "300m", "1"))
	}
	if g.chance(80) {
		requests[corev1.ResourceMemory] = resource.MustParse(pick(g, "64Mi", "300Mi", "1Gi"))
	}
	if g.chance(10) {
		requests["example.com/gpu"] = resource.MustParse("1")
	}
	if g.chance(10) {
		requests[corev1.ResourceEphemeralStorage] = resource.MustParse("3Gi")
	}
	c := corev1.Container{Name: "c", Image: g.image(), Resources: corev1.ResourceRequirements{Requests: requests}}
	if g.chance(15) {
		c.Ports = []corev1.ContainerPort{{
			HostPort: pick(g, int32(80), 81), Protocol: pick(g, corev1.ProtocolTCP, corev1.ProtocolUDP),
			HostIP: pick(g, "", "0.0.0.0", "127.0.0.1", "10.0.0.1"),
		}}
	}
	return c
}

func (g *generator) affinity() *corev1.NodeAffinity {
	a := &corev1.NodeAffinity{}
	if g.chance(60) {
		a.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{NodeSelectorTerms: g.terms()}
	}
	for range g.IntN(3) {
		a.PreferredDuringSchedulingIgnoredDuringExecution = append(a.PreferredDuringSchedulingIgnoredDuringExecution,
			corev1.PreferredSchedulingTerm{Weight: 1 + g.Int32N(100), Preference: g.term()})
	}
	return a
}

func (g *generator) terms() []corev1.NodeSelectorTerm {
	terms := []corev1.NodeSelectorTerm{g.term()}
	if g.chance(30) {
		terms = append(terms, g.term())
	}
	return terms
}

func (g *generator) term() corev1.NodeSelectorTerm {
	node := fmt.Sprintf("n%d", g.IntN(max(1, g.nodes)))
	switch g.IntN(6) {
	case 0: // as the Pods of a DaemonSet
		return corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{
			{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{node}}}}
	case 1:
		return corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{
			{Key: "metadata.name", Operator: corev1.NodeSelectorOpNotIn, Values: []string{node}}}}
	case 2:
		return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{node, "shared-host"}}}}
	case 3:
		return corev1.NodeSelectorTerm{} // matches nothing
	case 4:
		return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: "disk", Operator: pick(g, corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist)}}}
	default:
		return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: "zone", Operator: pick(g, corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn),
				Values: []string{pick(g, "a", "b"), "c"}}}}
	}
}
