package cycle_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/scheduler/internal/config"
)

// otherwise is what a profile says of rules that is not their default, as the reference understands it.
type otherwise struct {
	// resource scores one resource, by what is left where it is nil.
	resource func(used, capacity int64) int64
	// weights of resources, one each of CPU and memory where it is nil.
	weights map[corev1.ResourceName]int64
	// positive leaves out resources of score 0, and rounds.
	positive bool
	// ignored are resources, and what stands before the slash of others, that no node is refused for.
	ignored []string
	// even are the resources that are to be used alike, CPU and memory where it is nil.
	even []corev1.ResourceName
	// The profile bars nodes with one disk, and prefers those with another one by a weight of 7.
	bars, prefers string
	// spreads are the constraints of Pods without any, those of the system where it is nil.
	spreads []corev1.TopologySpreadConstraint
	// attracts is what a required affinity term adds for Pods that it selects, less 1.
	attracts int64
	// deaf is whether a Pod that prefers nothing does not hear what others prefer.
	deaf bool
	// off are the parts of plugins that are off, weighs the weights of others.
	off    map[string]bool
	weighs map[string]int64
}

// filters reports whether the filter of a plugin is on.
func (o otherwise) filters(plugin string) bool { return !o.off["filter "+plugin] }

// weigh is the weight of a plugin's score, which is usually this.
func (o otherwise) weigh(plugin string, usually int64) int64 {
	if o.off["score "+plugin] {
		return 0
	}
	if weight, ok := o.weighs[plugin]; ok {
		return weight
	}
	return usually
}

// ignores reports whether the resource never refuses a node: only resources that others define can be left out.
func (o otherwise) ignores(name corev1.ResourceName) bool {
	group, _, others := strings.Cut(string(name), "/")
	return others && (slices.Contains(o.ignored, string(name)) || slices.Contains(o.ignored, group))
}

// option is the arguments of one plugin, and what the reference is to make of them.
type option struct {
	args  string
	means func(*otherwise)
}

// options are by plugin, which keep their default beside these.
var options = []struct {
	plugin  string
	choices []option
}{
	{
		"NodeResourcesFit",
		[]option{
			{"{scoringStrategy: {type: MostAllocated}}", func(o *otherwise) { o.resource = most }},
			{`{scoringStrategy: {type: MostAllocated, resources: [{name: example.com/gpu, weight: 9}, {name: cpu}]}}`,
				func(o *otherwise) {
					o.resource = most
					o.weights = map[corev1.ResourceName]int64{"example.com/gpu": 9, corev1.ResourceCPU: 1}
				}},
			{
				`{scoringStrategy: {type: LeastAllocated, resources: [{name: memory, weight: 5}, {name: hugepages-2Mi, weight: 3},
    {name: ephemeral-storage, weight: 2}, {name: pods, weight: 50}]}}`,
				func(o *otherwise) {
					o.weights = map[corev1.ResourceName]int64{corev1.ResourceMemory: 5, "hugepages-2Mi": 3,
						corev1.ResourceEphemeralStorage: 2, corev1.ResourcePods: 50}
				},
			},
			{`{scoringStrategy: {type: RequestedToCapacityRatio,
    resources: [{name: cpu, weight: 3}, {name: memory, weight: 1}],
    requestedToCapacityRatio: {shape: [
      {utilization: 20, score: 0}, {utilization: 70, score: 9}, {utilization: 90, score: 4}]}}}`,
				func(o *otherwise) {
					o.positive, o.resource = true, bent
					o.weights = map[corev1.ResourceName]int64{corev1.ResourceCPU: 3, corev1.ResourceMemory: 1}
				}},
			{"{ignoredResources: [example.com/gpu, hugepages-2Mi, cpu]}", func(o *otherwise) {
				o.ignored = []string{"example.com/gpu", "hugepages-2Mi", "cpu"}
			}},
			{"{ignoredResourceGroups: [example.com, hugepages-2Mi]}", func(o *otherwise) {
				o.ignored = []string{"example.com", "hugepages-2Mi"}
			}},
		},
	},
	{"NodeAffinity", []option{
		{`{addedAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [
    {weight: 7, preference: {matchExpressions: [{key: disk, operator: In, values: [ssd]}]}}]}}`,
			func(o *otherwise) { o.prefers = "ssd" }},
		{`{addedAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [
    {matchExpressions: [{key: disk, operator: NotIn, values: [hdd]}]}]}}}`, func(o *otherwise) { o.bars = "hdd" }},
	}},
	{"NodeResourcesBalancedAllocation", []option{
		{"{resources: [{name: example.com/gpu}, {name: memory}, {name: cpu}, {name: ephemeral-storage}]}",
			func(o *otherwise) {
				o.even = []corev1.ResourceName{"example.com/gpu", corev1.ResourceMemory, corev1.ResourceCPU,
					corev1.ResourceEphemeralStorage}
			}},
		{"{resources: [{name: hugepages-2Mi}, {name: pods}, {name: cpu}]}", func(o *otherwise) {
			o.even = []corev1.ResourceName{"hugepages-2Mi", corev1.ResourcePods, corev1.ResourceCPU}
		}},
	}},
	{"PodTopologySpread", []option{
		{"{defaultingType: List}", func(o *otherwise) { o.spreads = []corev1.TopologySpreadConstraint{} }},
		{`{defaultingType: List, defaultConstraints: [
    {topologyKey: topology.kubernetes.io/zone, maxSkew: 1, whenUnsatisfiable: DoNotSchedule, minDomains: 2},
    {topologyKey: disk, maxSkew: 2, whenUnsatisfiable: ScheduleAnyway}]}`, func(o *otherwise) {
			o.spreads = []corev1.TopologySpreadConstraint{
				{TopologyKey: "topology.kubernetes.io/zone", MaxSkew: 1, WhenUnsatisfiable: corev1.DoNotSchedule,
					MinDomains: new(int32(2))},
				{TopologyKey: "disk", MaxSkew: 2, WhenUnsatisfiable: corev1.ScheduleAnyway}}
		}},
		{`{defaultingType: List, defaultConstraints: [
    {topologyKey: kubernetes.io/hostname, maxSkew: 1, whenUnsatisfiable: DoNotSchedule, nodeTaintsPolicy: Honor},
    {topologyKey: zone, maxSkew: 4, whenUnsatisfiable: ScheduleAnyway, nodeAffinityPolicy: Ignore}]}`,
			func(o *otherwise) {
				o.spreads = []corev1.TopologySpreadConstraint{
					{TopologyKey: "kubernetes.io/hostname", MaxSkew: 1, WhenUnsatisfiable: corev1.DoNotSchedule,
						NodeTaintsPolicy: new(corev1.NodeInclusionPolicyHonor)},
					{TopologyKey: "zone", MaxSkew: 4, WhenUnsatisfiable: corev1.ScheduleAnyway,
						NodeAffinityPolicy: new(corev1.NodeInclusionPolicyIgnore)}}
			}},
	}},
	{"InterPodAffinity", []option{
		{"{hardPodAffinityWeight: 0}", func(o *otherwise) { o.attracts = -1 }},
		{"{hardPodAffinityWeight: 70}", func(o *otherwise) { o.attracts = 69 }},
		{"{ignorePreferredTermsOfExistingPods: true}", func(o *otherwise) { o.deaf = true }},
		{"{hardPodAffinityWeight: 20, ignorePreferredTermsOfExistingPods: true}",
			func(o *otherwise) { o.attracts, o.deaf = 19, true }},
	}},
}

// Plugins of which a part can be off. Without VolumeBinding no plugin takes care of claims.
var (
	filterPlugins = []string{"NodeName", "NodeAffinity", "NodeUnschedulable", "TaintToleration", "VolumeRestrictions",
		"VolumeZone", "NodePorts", "NodeResourcesFit", "NodeVolumeLimits", "PodTopologySpread", "InterPodAffinity"}
	scorePlugins = []string{"NodeAffinity", "TaintToleration", "NodeResourcesFit", "NodeResourcesBalancedAllocation",
		"PodTopologySpread", "InterPodAffinity", "ImageLocality"}
)

// settingsOf returns the configuration of a seed, and what the reference is to make of it: of one seed in four the
// default.
func settingsOf(t *testing.T, seed uint64) (config.Config, otherwise) {
	t.Helper()
	o := otherwise{off: map[string]bool{}, weighs: map[string]int64{}}
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 9))}
	text := "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
	if seed%4 != 0 {
		text += "profiles:\n- pluginConfig:\n"
		for _, of := range options {
			if g.chance(60) {
				chosen := pick(g, of.choices...)
				text += fmt.Sprintf("  - name: %s\n    args: %s\n", of.plugin, chosen.args)
				chosen.means(&o)
			}
		}
		text += "  - {name: NodeName}\n" + g.plugins(&o)
	}
	settings, err := config.Parse([]byte(text))
	if err != nil {
		t.Fatalf("%v of\n%s", err, text)
	}
	return settings, o
}

// plugins are lists of which some parts of plugins are off, and others weigh more or less.
func (g *generator) plugins(o *otherwise) string {
	point := pick(g, "score", "score", "multiPoint")
	filter, disabled, enabled := "", "", ""
	for _, plugin := range filterPlugins {
		if g.chance(8) {
			o.off["filter "+plugin] = true
			filter += fmt.Sprintf("{name: %s}, ", plugin)
		}
	}
	all := point == "score" && g.chance(20)
	if all {
		disabled = `{name: "*"}`
		o.off["score VolumeBinding"] = true
	}
	for _, plugin := range scorePlugins {
		switch {
		case g.chance(40):
			weight := 1 + g.Int64N(12)
			o.weighs[plugin] = weight
			enabled += fmt.Sprintf("{name: %s, weight: %d}, ", plugin, weight)
		case all:
			o.off["score "+plugin] = true
		case g.chance(15):
			o.off["score "+plugin] = true
			o.off["filter "+plugin] = o.off["filter "+plugin] || point == "multiPoint"
			disabled += fmt.Sprintf("{name: %s}, ", plugin)
		}
	}
	return fmt.Sprintf("  plugins:\n    filter: {disabled: [%s]}\n    %s: {disabled: [%s], enabled: [%s]}\n", filter,
		point, disabled, enabled)
}

// most is the share of what would be used.
func most(used, capacity int64) int64 { return 100 * min(used, capacity) / capacity }

// bent is 0 up to a fifth, 90 at seven tenths, and from there down to 40 at nine.
func bent(used, capacity int64) int64 {
	percent := int64(100)
	if used <= capacity {
		percent = 100 * used / capacity
	}
	switch {
	case percent <= 20:
		return 0
	case percent <= 70:
		return 90 * (percent - 20) / 50
	case percent <= 90:
		return 90 - 50*(percent-70)/20
	}
	return 40
}

// barred reports whether the profile keeps its Pods from the node.
func (o otherwise) barred(n *corev1.Node) bool { return o.bars != "" && n.Labels["disk"] == o.bars }

// elsewhere reports whether the Pod names its nodes by field, and this is none of them: no rule looks at it then, and
// so the reason does not say whether the profile bars it.
func elsewhere(p *corev1.Pod, n *corev1.Node) bool {
	if _, ok := p.Spec.NodeSelector[corev1.LabelHostname]; ok || p.Spec.Affinity == nil ||
		p.Spec.Affinity.NodeAffinity == nil ||
		p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return false
	}
	for _, term := range p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		named := false
		for _, r := range term.MatchFields {
			if r.Operator == corev1.NodeSelectorOpIn && slices.Contains(r.Values, n.Name) {
				return false
			}
			named = named || r.Operator == corev1.NodeSelectorOpIn
		}
		if !named && len(term.MatchExpressions)+len(term.MatchFields) > 0 {
			return false
		}
	}
	return true
}

// preferred sums the weights of the terms that the node meets, those of the profile too.
func (o otherwise) preferred(p *corev1.Pod, n *corev1.Node) int64 {
	sum := preferred(p, n)
	if o.prefers != "" && n.Labels["disk"] == o.prefers {
		sum += 7
	}
	return sum
}
