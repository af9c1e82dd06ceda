package cycle_test

import (
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

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
	// kept are Pods for which room is kept on spec.nodeName. They count in no domain.
	kept map[types.UID]*corev1.Pod
	*sums
	otherwise // what the profile says
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
	c.addShared(v.Scores, c.weigh("TaintToleration", 3), true, func(n *corev1.Node) int64 {
		return intolerable(p, n,
			corev1.TaintEffectPreferNoSchedule)
	})
	c.addShared(v.Scores, c.weigh("NodeAffinity", 2), false, func(n *corev1.Node) int64 { return c.preferred(p, n) })
	for name := range v.Scores {
		n := c.Nodes[name]
		v.Scores[name] += c.weigh("NodeResourcesFit", 1)*c.room(p, n) +
			c.weigh("NodeResourcesBalancedAllocation", 1)*c.balanced(p, n) +
			c.weigh("ImageLocality", 1)*c.imageLocality(p, n) +
			c.weigh("VolumeBinding", 1)*c.storageLeft(p, n)
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
	affinity, taints := c.filters("NodeAffinity"), c.filters("TaintToleration")
	switch {
	case len(claims) > 0 && first:
		return claims
	case affinity && c.barred(n) && !elsewhere(p, n):
		return []string{"node(s) didn't match scheduler-enforced node affinity"}
	case affinity && !matches(p, n):
		return []string{"node(s) didn't match Pod's node affinity/selector"}
	case c.filters("NodeUnschedulable") && n.Spec.Unschedulable && !tolerates(p, cordon):
		return []string{"node(s) were unschedulable"}
	case taints && intolerable(p, n, corev1.TaintEffectNoSchedule)+intolerable(p, n, corev1.TaintEffectNoExecute) > 0:
		return []string{"node(s) had untolerated taint(s)"}
	case len(claims) > 0 && !c.tracks(p):
		return claims
	case c.filters("VolumeZone") && !c.inZones(p, n):
		return []string{"node(s) had no available volume zone"}
	case len(c.usersOf(p)) > 0:
		return []string{taken}
	case len(claims) > 0:
		return claims
	case c.filters("NodePorts") && !c.portsFree(p, n):
		return []string{"node(s) didn't have free ports for the requested pod ports"}
	}
	if reasons := c.insufficient(p, n); len(reasons) > 0 && c.filters("NodeResourcesFit") {
		return reasons
	}
	if driver := c.uninstalled(p, n); driver != "" && c.filters("NodeVolumeLimits") {
		return []string{driver}
	}
	if c.filters("NodeVolumeLimits") && c.exceeded(p, n) {
		return []string{exceeds}
	}
	if reason := c.unevenness(p, n); reason != "" && c.filters("PodTopologySpread") {
		return []string{reason}
	}
	if reason := c.unsociable(p, n); reason != "" && c.filters("InterPodAffinity") {
		return []string{reason}
	}
	return nil
}

var cordon = corev1.Taint{Key: "node.kubernetes.io/unschedulable", Effect: corev1.TaintEffectNoSchedule}

func (c *cluster) insufficient(p *corev1.Pod, n *corev1.Node) []string {
	var reasons []string
	pods := 0
	used := corev1.ResourceList{}
	for _, other := range c.taking(n) {
		pods++
		add(used, c.requests(other, asAsked))
	}
	if allowed := n.Status.Allocatable[corev1.ResourcePods]; int64(pods)+1 > allowed.Value() {
		reasons = append(reasons, "Too many pods")
	}
	for name, want := range c.requests(p, asAsked) {
		if want.IsZero() || c.ignores(name) {
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

// taking returns the Pods that take room on the node, or for which it is kept.
func (c *cluster) taking(n *corev1.Node) []*corev1.Pod {
	out := c.on(n)
	for uid, p := range c.kept {
		if p.Spec.NodeName == n.Name && c.Pods[uid] == nil {
			out = append(out, p)
		}
	}
	return out
}

func (c *cluster) portsFree(p *corev1.Pod, n *corev1.Node) bool {
	for _, other := range c.taking(n) {
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
	}
	number, err := strconv.ParseInt(value, 10, 64)
	bound, _ := strconv.ParseInt(r.Values[0], 10, 64)
	return err == nil && (r.Operator == corev1.NodeSelectorOpGt && number > bound ||
		r.Operator == corev1.NodeSelectorOpLt && number < bound)
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
		if t.Operator == corev1.TolerationOpGt || t.Operator == corev1.TolerationOpLt {
			valueMatches = compares(taint.Value, t.Operator, t.Value)
		}
		return keyMatches && effectMatches && valueMatches
	})
}

// compares reports whether a number of a taint is greater or less than that of a toleration; both must be written as
// numbers are.
func compares(value string, operator corev1.TolerationOperator, bound string) bool {
	a, err := strconv.ParseInt(value, 10, 64)
	if err != nil || strconv.FormatInt(a, 10) != value {
		return false
	}
	b, err := strconv.ParseInt(bound, 10, 64)
	if err != nil || strconv.FormatInt(b, 10) != bound {
		return false
	}
	return operator == corev1.TolerationOpGt && a > b || operator == corev1.TolerationOpLt && a < b
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
