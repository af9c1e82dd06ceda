// Package rulestest judges nodes by a single rule, and makes the nodes and Pods for it.
package rulestest

import (
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/rules"
)

// Cluster is a few nodes and the Pods on them.
type Cluster struct {
	t       *testing.T
	state   *columns.State
	running []*corev1.Pod
	group   labels.Selector
}

// New returns a Cluster of these nodes.
func New(t *testing.T, nodes ...*corev1.Node) *Cluster {
	c := &Cluster{t: t, state: columns.New(1)}
	for _, n := range nodes {
		c.state.SetNode(n)
	}
	return c
}

// Run puts Pods onto the node that they name.
func (c *Cluster) Run(pods ...*corev1.Pod) *Cluster {
	for _, p := range pods {
		c.state.SetPod(p, p.Spec.NodeName, c.state.Usage(p))
	}
	c.running = append(c.running, pods...)
	return c
}

// Grouped has the Pods that are judged belong to Services or controllers that select so.
func (c *Cluster) Grouped(selector labels.Selector) *Cluster {
	c.group = selector
	return c
}

// Subject returns the Pod as rules see it.
func (c *Cluster) Subject(p *corev1.Pod) rules.Pod { return rules.PodOf(p, c.state.Usage(p)) }

// carrying returns the Pod as the rule sees it, where each Pod carries what the rule makes of it.
func (c *Cluster) carrying(rule rules.Rule, p *corev1.Pod) rules.Pod {
	subject := c.Subject(p)
	if rule.Terms == nil && rule.Asks == nil {
		return subject
	}
	var own []columns.TermSpec
	if rule.Asks != nil {
		own = rule.Asks(p, c.group)
	}
	if rule.Terms != nil {
		own = append(own, rule.Terms(p)...)
		for _, other := range c.running {
			c.state.Carry(other.UID, rule.Terms(other))
		}
	}
	subject.Terms = c.state.Carry(p.UID, own)
	subject.SelectedBy = c.state.TermsThatSelect(p, subject.Terms)
	return subject
}

// Refusals returns why the rule keeps the Pod from the node without some of its Pods; nothing when it does not.
func (c *Cluster) Refusals(rule rules.Rule, p *corev1.Pod, node string, without ...types.UID) []string {
	c.t.Helper()
	f := rule.Filter(c.carrying(rule, p))
	if f == nil {
		return nil
	}
	reasons := judge(c, f.Judge, node, without)
	var texts []string
	for i, text := range f.Texts {
		if reasons&(1<<i) != 0 {
			texts = append(texts, text)
			reasons &^= 1 << i
		}
	}
	if reasons != 0 {
		c.t.Errorf("rule %s has reasons %b without a text", rule.Name, reasons)
	}
	return texts
}

// Scores returns the raw score of each node; nothing when all are equal to the rule.
func (c *Cluster) Scores(rule rules.Rule, p *corev1.Pod) map[string]int64 {
	c.t.Helper()
	s := rule.Score(c.carrying(rule, p))
	if s == nil {
		return nil
	}
	scores := map[string]int64{}
	for slot := range columns.Slot(c.state.Slots()) {
		scores[c.state.Name(slot)] = judge(c, s.Judge, c.state.Name(slot), nil)
	}
	return scores
}

func judge[T any](c *Cluster, j rules.Judge[T], node string, without []types.UID) T {
	c.t.Helper()
	slot := c.state.Slot(node)
	if slot == columns.None {
		c.t.Fatalf("there is no node %s", node)
	}
	switch j.On() {
	case rules.OnRoom:
		return j.Node(c.state.NodeWithout(slot, without...))
	case rules.OnDomain:
		var domains []columns.Domain
		for _, count := range j.Counts() {
			counted := c.state.Domains(count)
			defer counted.Release()
			domains = append(domains, c.state.NodeWithout(slot, without...).Domain(counted))
		}
		return j.Domains(domains)
	case rules.OnImages:
		images := make([]columns.Image, len(j.ImageNames()))
		for i := range c.state.Images(slot, j.ImageNames()).All {
			images[i] = c.state.Image(j.ImageNames()[i])
		}
		return j.Images(images)
	default:
		return j.View(c.state.View(slot))
	}
}

// SameClass reports whether the rule's key is the same for both Pods.
func SameClass(rule rules.Rule, a, b *corev1.Pod) bool {
	return slices.Equal(rule.Key(nil, rules.PodOf(a, nil)), rule.Key(nil, rules.PodOf(b, nil)))
}

// Node returns a node with 4 CPUs, 4 GiB of memory and room for ten Pods.
func Node(name string, change ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			corev1.LabelHostname: name, corev1.LabelOSStable: "linux",
		}},
		Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
			corev1.ResourceCPU:    resource.MustParse("4"),
			corev1.ResourceMemory: resource.MustParse("4Gi"),
			corev1.ResourcePods:   resource.MustParse("10"),
		}},
	}
	for _, c := range change {
		c(n)
	}
	return n
}

// Pod returns a Pod with one container that requests nothing.
func Pod(name string, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name)},
		Spec: corev1.PodSpec{SchedulerName: corev1.DefaultSchedulerName, Containers: []corev1.Container{{
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{}}}}},
	}
	for _, c := range change {
		c(p)
	}
	return p
}

// Identified returns a Pod that is nothing but its UID.
func Identified(uid types.UID) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: uid}}
}

// Tainted adds taints.
func Tainted(taints ...corev1.Taint) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Spec.Taints = append(n.Spec.Taints, taints...) }
}

// Labelled adds a label.
func Labelled(key, value string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Labels[key] = value }
}

// Allocatable sets the amount of a resource that the node offers to Pods.
func Allocatable(name corev1.ResourceName, amount string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Status.Allocatable[name] = resource.MustParse(amount) }
}

// Cordoned is what kubectl cordon does.
func Cordoned(n *corev1.Node) { n.Spec.Unschedulable = true }

// OnNode puts the Pod onto a node.
func OnNode(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.NodeName = name }
}

// Requests sets the amount of a resource that the container requests.
func Requests(name corev1.ResourceName, amount string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		requests := maps.Clone(p.Spec.Containers[0].Resources.Requests)
		requests[name] = resource.MustParse(amount)
		p.Spec.Containers[0].Resources.Requests = requests
	}
}

// HostPort claims a TCP port of the node.
func HostPort(port int32) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: port, Protocol: corev1.ProtocolTCP}}
	}
}

// Tolerating adds tolerations.
func Tolerating(tolerations ...corev1.Toleration) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Tolerations = append(p.Spec.Tolerations, tolerations...) }
}

// Selecting sets the node selector.
func Selecting(key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{key: value} }
}

// Requiring sets the terms of the required node affinity.
func Requiring(terms ...corev1.NodeSelectorTerm) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms}}}
	}
}

// Preferring adds a preferred term.
func Preferring(weight int32, term corev1.NodeSelectorTerm) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		if p.Spec.Affinity == nil {
			p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}}
		}
		a := p.Spec.Affinity.NodeAffinity
		a.PreferredDuringSchedulingIgnoredDuringExecution = append(a.PreferredDuringSchedulingIgnoredDuringExecution,
			corev1.PreferredSchedulingTerm{Weight: weight, Preference: term})
	}
}

// Expression is a term over a label.
func Expression(key string, operator corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorTerm {
	r := corev1.NodeSelectorRequirement{Key: key, Operator: operator, Values: values}
	return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{r}}
}

// Named is a term over the node's name.
func Named(operator corev1.NodeSelectorOperator, names ...string) corev1.NodeSelectorTerm {
	r := corev1.NodeSelectorRequirement{Key: "metadata.name", Operator: operator, Values: names}
	return corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{r}}
}
