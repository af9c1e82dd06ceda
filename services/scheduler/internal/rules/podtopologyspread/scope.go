package podtopologyspread

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/rules"
	nodes "keelson.dev/services/scheduler/internal/rules/nodeaffinity"
	"keelson.dev/services/scheduler/internal/rules/tainttoleration"
)

// keys returns the topology keys of the constraints, sorted.
func keys(constraints []constraint) []string {
	var out []string
	for _, c := range constraints {
		out = append(out, c.TopologyKey)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func affinityPolicy(c *corev1.TopologySpreadConstraint) corev1.NodeInclusionPolicy {
	if c.NodeAffinityPolicy == nil {
		return corev1.NodeInclusionPolicyHonor
	}
	return *c.NodeAffinityPolicy
}

func taintsPolicy(c *corev1.TopologySpreadConstraint) corev1.NodeInclusionPolicy {
	if c.NodeTaintsPolicy == nil {
		return corev1.NodeInclusionPolicyIgnore
	}
	return *c.NodeTaintsPolicy
}

// appendEligible appends what of the Pod says over which nodes its constraints spread.
func appendEligible(b []byte, p rules.Pod, affinity, taints bool) []byte {
	if affinity {
		b = nodes.AppendRequired(b, p.Spec)
	}
	b = append(b, 0)
	if taints {
		b = tainttoleration.Key(b, p)
	}
	return b
}

// scope returns the nodes over which a constraint of the Pod spreads: those that the Pod may go to, as far as the
// policies say, and that have all the keys. It is nil for all that have the constraint's own key.
func scope(p rules.Pod, c *corev1.TopologySpreadConstraint, required []string) *columns.Scope {
	affinity := affinityPolicy(c) == corev1.NodeInclusionPolicyHonor && nodes.Required(p.Spec)
	taints := taintsPolicy(c) == corev1.NodeInclusionPolicyHonor
	others := slices.DeleteFunc(slices.Clone(required), func(key string) bool { return key == c.TopologyKey })
	if !affinity && !taints && len(others) == 0 {
		return nil
	}
	var want nodeaffinity.RequiredNodeAffinity
	if affinity {
		want = nodeaffinity.GetRequiredNodeAffinity(&corev1.Pod{Spec: *p.Spec})
	}
	b := appendEligible([]byte(name), p, affinity, taints)
	b = append(strconv.AppendBool(strconv.AppendBool(b, affinity), taints), 0)
	for _, key := range others {
		b = strconv.AppendQuote(b, key)
	}
	return &columns.Scope{Key: string(b), Has: func(v columns.View) bool {
		node := v.Node()
		for _, key := range others {
			if _, ok := node.Labels[key]; !ok {
				return false
			}
		}
		if affinity {
			if match, err := want.Match(node); err != nil || !match {
				return false
			}
		}
		return !taints || !tainttoleration.Repels(p.Spec.Tolerations, v.Taints)
	}}
}
