package cycle_test

import (
	"math"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	resourcehelper "k8s.io/component-helpers/resource"

	"keelson.dev/services/scheduler/internal/groups"
)

// cluster is the slow, obvious scheduler: it looks at every node and every Pod for each decision and keeps nothing.
// Tests compare the fast one with it. It shares no code with the rules.
type cluster struct {
	Nodes map[string]*corev1.Node
	Pods  map[types.UID]*corev1.Pod
	storage
	groupSet
	namespaces map[string]map[string]string // their labels
	// nominated are those of the Pods that have no node yet: they have no claim for themselves.
	nominated map[types.UID]*corev1.Pod
	*sums
}

func newCluster() *cluster {
	return &cluster{Nodes: map[string]*corev1.Node{}, Pods: map[types.UID]*corev1.Pod{},
		storage: newStorage(), groupSet: groupSet{groups: map[groups.Name]any{}},
		namespaces: map[string]map[string]string{}, sums: &sums{}}
}

// expectation is what a Pod may expect.
type expectation struct {
	// Scores is the score of each node that can take the Pod.
	Scores map[string]int64
	// Refusals is the number of nodes by reason.
	Refusals map[string]int
}

// Best returns the best score, and whether any node can take the Pod.
func (v expectation) Best() (int64, bool) {
	best, found := int64(math.MinInt64), false
	for _, score := range v.Scores {
		best, found = max(best, score), true
	}
	return best, found
}

// Judge judges every node.
func (c *cluster) Judge(p *corev1.Pod) expectation { return c.judgeAmong(p, c.Nodes) }

// judgeAmong judges these nodes as if the Pod could go to no other.
func (c *cluster) judgeAmong(p *corev1.Pod, among map[string]*corev1.Node) expectation {
	v := expectation{Scores: map[string]int64{}, Refusals: map[string]int{}}
	for name, node := range among {
		reasons := c.refusals(p, node)
		for _, r := range reasons {
			v.Refusals[r]++
		}
		if len(reasons) == 0 {
			v.Scores[name] = 0
		}
	}
	c.addShared(v.Scores, 3, true, func(n *corev1.Node) int64 {
		return intolerable(p, n,
			corev1.TaintEffectPreferNoSchedule)
	})
	c.addShared(v.Scores, 2, false, func(n *corev1.Node) int64 { return preferred(p, n) })
	for name := range v.Scores {
		v.Scores[name] += c.leastAllocated(p, c.Nodes[name]) + c.balanced(p, c.Nodes[name]) +
			c.imageLocality(p, c.Nodes[name])
	}
	c.addEvenness(p, v.Scores)
	c.addAttraction(p, v.Scores)
	return v
}

// addShared adds weighted raw scores, scaled to 0..100 among the nodes that can take the Pod.
func (c *cluster) addShared(scores map[string]int64, weight int64, fewerIsBetter bool, raw func(*corev1.Node) int64) {
	greatest := int64(0)
	for name := range scores {
		greatest = max(greatest, raw(c.Nodes[name]))
	}
	for name := range scores {
		score := int64(0)
		if greatest > 0 {
			score = 100 * raw(c.Nodes[name]) / greatest
		}
		if fewerIsBetter {
			score = 100 - score
		}
		scores[name] += weight * score
	}
}

// refusals returns the reasons of the first rule that refuses.
func (c *cluster) refusals(p *corev1.Pod, n *corev1.Node) []string {
	claims, first := c.claimReasons(p, n)
	switch {
	case len(claims) > 0 && first:
		return claims
	case !matches(p, n):
		return []string{"node(s) didn't match Pod's node affinity/selector"}
	case n.Spec.Unschedulable && !tolerates(p, corev1.Taint{Key: "node.kubernetes.io/unschedulable",
		Effect: corev1.TaintEffectNoSchedule}):
		return []string{"node(s) were unschedulable"}
	case intolerable(p, n, corev1.TaintEffectNoSchedule)+intolerable(p, n, corev1.TaintEffectNoExecute) > 0:
		return []string{"node(s) had untolerated taint(s)"}
	case len(claims) > 0:
		return claims
	case !c.inZones(p, n):
		return []string{"node(s) had no available volume zone"}
	case len(c.usersOf(p)) > 0:
		return []string{taken}
	case !c.portsFree(p, n):
		return []string{"node(s) didn't have free ports for the requested pod ports"}
	}
	if reasons := c.insufficient(p, n); len(reasons) > 0 {
		return reasons
	}
	if c.exceeded(p, n) {
		return []string{exceeds}
	}
	if reason := c.unevenness(p, n); reason != "" {
		return []string{reason}
	}
	if reason := c.unsociable(p, n); reason != "" {
		return []string{reason}
	}
	return nil
}

func (c *cluster) insufficient(p *corev1.Pod, n *corev1.Node) []string {
	var reasons []string
	pods := 0
	used := corev1.ResourceList{}
	for _, other := range c.on(n) {
		pods++
		add(used, c.requests(other, asAsked))
	}
	if allowed := n.Status.Allocatable[corev1.ResourcePods]; int64(pods)+1 > allowed.Value() {
		reasons = append(reasons, "Too many pods")
	}
	for name, want := range c.requests(p, asAsked) {
		if want.IsZero() {
			continue
		}
		have := n.Status.Allocatable[name]
		have.Sub(used[name])
		if have.Cmp(want) < 0 {
			reasons = append(reasons, "Insufficient "+string(name))
		}
	}
	return reasons
}

func (c *cluster) on(n *corev1.Node) []*corev1.Pod {
	var out []*corev1.Pod
	for _, p := range c.Pods {
		if p.Spec.NodeName == n.Name {
			out = append(out, p)
		}
	}
	return out
}

func (c *cluster) portsFree(p *corev1.Pod, n *corev1.Node) bool {
	for _, other := range c.on(n) {
		for _, a := range hostPorts(p) {
			for _, b := range hostPorts(other) {
				sameAddress := a.HostIP == b.HostIP || anyAddress(a.HostIP) || anyAddress(b.HostIP)
				if a.HostPort == b.HostPort && a.Protocol == b.Protocol && sameAddress {
					return false
				}
			}
		}
	}
	return true
}

func anyAddress(ip string) bool { return ip == "" || ip == "0.0.0.0" }

func hostPorts(p *corev1.Pod) []corev1.ContainerPort {
	var out []corev1.ContainerPort
	for _, c := range p.Spec.Containers {
		for _, port := range c.Ports {
			if port.HostPort != 0 {
				out = append(out, port)
			}
		}
	}
	return out
}

// leastAllocated is the mean of the shares of CPU and memory that would be left.
func (c *cluster) leastAllocated(p *corev1.Pod, n *corev1.Node) int64 {
	var sum, resources int64
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		capacity := amount(n.Status.Allocatable, name)
		if capacity == 0 {
			continue
		}
		resources++
		sum += max(0, capacity-c.load(p, n, name, true)) * 100 / capacity
	}
	if resources == 0 {
		return 0
	}
	return sum / resources
}

// balanced falls with the distance between the shares of CPU and memory that would be used.
func (c *cluster) balanced(p *corev1.Pod, n *corev1.Node) int64 {
	own := c.requests(p, asAsked)
	if own.Cpu().IsZero() && own.Memory().IsZero() {
		return 0
	}
	var shares []float64
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		capacity := amount(n.Status.Allocatable, name)
		if capacity == 0 {
			return 100
		}
		shares = append(shares, min(1, float64(c.load(p, n, name, false))/float64(capacity)))
	}
	return int64((1 - math.Abs(shares[0]-shares[1])/2) * 100)
}

// load is what the Pods on the node and this one ask for; as asked, or with what containers get that ask for nothing.
func (c *cluster) load(p *corev1.Pod, n *corev1.Node, name corev1.ResourceName, defaults bool) int64 {
	how := asAsked
	if defaults {
		how = withDefaults
	}
	sum := int64(0)
	for _, other := range append(c.on(n), p) {
		sum += amount(c.requests(other, how), name)
	}
	return sum
}

// How requests are summed up: as they are asked for, or with what containers get that ask for nothing.
const (
	asAsked = iota
	withDefaults
)

// sums are the requests of Pods, by object: adding them up anew for each node would be most of the work.
type sums [2]map[*corev1.Pod]corev1.ResourceList

func (c *cluster) requests(p *corev1.Pod, how int) corev1.ResourceList {
	if c.sums[how] == nil {
		c.sums[how] = map[*corev1.Pod]corev1.ResourceList{}
	}
	sum, known := c.sums[how][p]
	if !known {
		options := resourcehelper.PodResourcesOptions{UseStatusResources: true}
		if how == withDefaults {
			options.NonMissingContainerRequests = assumed
		}
		sum = resourcehelper.PodRequests(p, options)
		c.sums[how][p] = sum
	}
	return sum
}

// imageLocality grows with the size of the Pod's images that are on the node, less where few nodes have them.
func (c *cluster) imageLocality(p *corev1.Pod, n *corev1.Node) int64 {
	var wanted []string
	for _, container := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
		wanted = append(wanted, container.Image)
	}
	for _, v := range p.Spec.Volumes {
		if v.Image != nil {
			wanted = append(wanted, v.Image.Reference)
		}
	}
	sum := int64(0)
	for _, name := range wanted {
		if !strings.Contains(path.Base(name), ":") {
			name += ":latest"
		}
		if size, have := imageOn(n, name); have {
			nodes := 0
			for _, other := range c.Nodes {
				if _, has := imageOn(other, name); has {
					nodes++
				}
			}
			sum += int64(float64(size) * (float64(nodes) / float64(len(c.Nodes))))
		}
	}
	const mebibyte = 1024 * 1024
	from, to := int64(23*mebibyte), int64(1000*mebibyte*len(wanted))
	return 100 * (min(max(sum, from), to) - from) / (to - from)
}

func imageOn(n *corev1.Node, name string) (int64, bool) {
	for _, image := range n.Status.Images {
		if slices.Contains(image.Names, name) {
			return image.SizeBytes, true
		}
	}
	return 0, false
}

// matches reports whether the Pod asks for the node, by selector and by required affinity.
func matches(p *corev1.Pod, n *corev1.Node) bool {
	if !labels.SelectorFromSet(p.Spec.NodeSelector).Matches(labels.Set(n.Labels)) {
		return false
	}
	a := p.Spec.Affinity
	if a == nil || a.NodeAffinity == nil || a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return true
	}
	return slices.ContainsFunc(a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms,
		func(t corev1.NodeSelectorTerm) bool { return termMatches(t, n) })
}

func termMatches(t corev1.NodeSelectorTerm, n *corev1.Node) bool {
	if len(t.MatchExpressions)+len(t.MatchFields) == 0 {
		return false
	}
	for _, r := range t.MatchExpressions {
		if !requirementMatches(r, n.Labels) {
			return false
		}
	}
	for _, r := range t.MatchFields {
		if !requirementMatches(r, map[string]string{"metadata.name": n.Name}) {
			return false
		}
	}
	return true
}

func requirementMatches(r corev1.NodeSelectorRequirement, of map[string]string) bool {
	value, has := of[r.Key]
	switch r.Operator {
	case corev1.NodeSelectorOpIn:
		return has && slices.Contains(r.Values, value)
	case corev1.NodeSelectorOpNotIn:
		return !has || !slices.Contains(r.Values, value)
	case corev1.NodeSelectorOpExists:
		return has
	case corev1.NodeSelectorOpDoesNotExist:
		return !has
	default:
		return false
	}
}

func preferred(p *corev1.Pod, n *corev1.Node) int64 {
	if p.Spec.Affinity == nil || p.Spec.Affinity.NodeAffinity == nil {
		return 0
	}
	sum := int64(0)
	for _, t := range p.Spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution {
		if termMatches(t.Preference, n) {
			sum += int64(t.Weight)
		}
	}
	return sum
}

// intolerable counts the node's taints of an effect that the Pod does not tolerate.
func intolerable(p *corev1.Pod, n *corev1.Node, effect corev1.TaintEffect) int64 {
	count := int64(0)
	for _, taint := range n.Spec.Taints {
		if taint.Effect == effect && !tolerates(p, taint) {
			count++
		}
	}
	return count
}

func tolerates(p *corev1.Pod, taint corev1.Taint) bool {
	return slices.ContainsFunc(p.Spec.Tolerations, func(t corev1.Toleration) bool {
		keyMatches := t.Key == taint.Key || t.Key == "" && t.Operator == corev1.TolerationOpExists
		effectMatches := t.Effect == "" || t.Effect == taint.Effect
		valueMatches := t.Operator == corev1.TolerationOpExists || t.Value == taint.Value
		return keyMatches && effectMatches && valueMatches
	})
}

// assumed is what a container counts for in scores that asks for nothing.
var assumed = corev1.ResourceList{
	corev1.ResourceCPU:    resource.MustParse("100m"),
	corev1.ResourceMemory: resource.MustParse("200Mi"),
}

func add(to, what corev1.ResourceList) {
	for name, quantity := range what {
		sum := to[name]
		sum.Add(quantity)
		to[name] = sum
	}
}

// amount is a quantity in the unit that scores divide: thousandths of a CPU, else whole units.
func amount(list corev1.ResourceList, name corev1.ResourceName) int64 {
	quantity := list[name]
	if name == corev1.ResourceCPU {
		return quantity.MilliValue()
	}
	return quantity.Value()
}
