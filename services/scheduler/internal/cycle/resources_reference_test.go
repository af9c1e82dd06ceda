package cycle_test

import (
	"maps"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// How requests are summed up: as they are asked for, or with what containers get that ask for nothing.
const (
	asAsked = iota
	withDefaults
)

// sums are the requests of Pods, by object: adding them up again for each node would be most of the work.
type sums [2]map[*corev1.Pod]corev1.ResourceList

func (c *cluster) requests(p *corev1.Pod, how int) corev1.ResourceList {
	if c.sums[how] == nil {
		c.sums[how] = map[*corev1.Pod]corev1.ResourceList{}
	}
	sum, known := c.sums[how][p]
	if !known {
		sum = total(p, how)
		c.sums[how][p] = sum
	}
	return sum
}

// total is what counts of a Pod: of each resource the greatest of what it asks for, what its node has allotted to it
// and what is in force there. What it asks for does not count where the node can never give it. What it asks for as a
// whole stands for what its containers do, and its overhead comes on top.
func total(p *corev1.Pod, how int) corev1.ResourceList {
	var lists []corev1.ResourceList
	if !hopeless(p) {
		lists = append(lists, peak(p, how, func(c *corev1.Container, _ *corev1.ContainerStatus) corev1.ResourceList {
			return c.Resources.Requests
		}))
	}
	if allotted, force := p.Status.AllocatedResources, p.Status.Resources; allotted != nil && force != nil &&
		force.Requests != nil {
		lists = append(lists, allotted, force.Requests)
	} else {
		given := func(c *corev1.Container, s *corev1.ContainerStatus) corev1.ResourceList {
			switch {
			case s != nil && s.AllocatedResources != nil:
				return s.AllocatedResources
			case hopeless(p):
				return nil
			}
			return c.Resources.Requests
		}
		lists = append(lists, peak(p, how, given), peak(p, how,
			func(c *corev1.Container, s *corev1.ContainerStatus) corev1.ResourceList {
				if s != nil && s.Resources != nil && s.Resources.Requests != nil {
					return s.Resources.Requests
				}
				return given(c, s)
			}))
	}
	sum := greatest(lists...)
	if p.Spec.Resources != nil && len(p.Spec.Resources.Requests) > 0 {
		maps.Copy(sum, whole(p))
	}
	add(sum, p.Spec.Overhead)
	return sum
}

// whole is what counts of what the Pod asks for as a whole.
func whole(p *corev1.Pod) corev1.ResourceList {
	var lists []corev1.ResourceList
	if p.Status.Resources == nil || !hopeless(p) {
		lists = append(lists, p.Spec.Resources.Requests)
	}
	if p.Status.Resources != nil {
		lists = append(lists, p.Status.Resources.Requests, p.Status.AllocatedResources)
	}
	sum := greatest(lists...)
	maps.DeleteFunc(sum, func(name corev1.ResourceName, _ resource.Quantity) bool {
		return name != corev1.ResourceCPU && name != corev1.ResourceMemory && !isHugepages(name)
	})
	return sum
}

func isHugepages(name corev1.ResourceName) bool { return strings.HasPrefix(string(name), "hugepages-") }

// hopeless reports whether the node can never give what the Pod requests.
func hopeless(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodResizePending && c.Reason == corev1.PodReasonInfeasible
	})
}

// asking is what a container asks for or has been given; it may have no status.
type asking func(*corev1.Container, *corev1.ContainerStatus) corev1.ResourceList

// peak is the most that the containers have at one time: each init container beside the sidecars before it, and in the
// end the containers beside all sidecars.
func peak(p *corev1.Pod, how int, of asking) corev1.ResourceList {
	asks := func(c *corev1.Container) corev1.ResourceList {
		var status *corev1.ContainerStatus
		for _, s := range slices.Concat(p.Status.ContainerStatuses, p.Status.InitContainerStatuses) {
			if s.Name == c.Name {
				status = &s
				break
			}
		}
		list := maps.Clone(of(c, status))
		for name, quantity := range assumed {
			if _, has := list[name]; how == withDefaults && !has {
				if list == nil {
					list = corev1.ResourceList{}
				}
				list[name] = quantity
			}
		}
		return list
	}
	var moments []corev1.ResourceList
	sidecars := corev1.ResourceList{}
	for i := range p.Spec.InitContainers {
		c, moment := &p.Spec.InitContainers[i], maps.Clone(sidecars)
		add(moment, asks(c))
		moments = append(moments, moment)
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			sidecars = moment
		}
	}
	last := maps.Clone(sidecars)
	for i := range p.Spec.Containers {
		add(last, asks(&p.Spec.Containers[i]))
	}
	return greatest(append(moments, last)...)
}

// greatest has the greatest quantity of each resource.
func greatest(lists ...corev1.ResourceList) corev1.ResourceList {
	out := corev1.ResourceList{}
	for _, list := range lists {
		for name, quantity := range list {
			if have, ok := out[name]; !ok || quantity.Cmp(have) > 0 {
				out[name] = quantity
			}
		}
	}
	return out
}

// assumed is what a container counts for in scores that asks for nothing.
var assumed = corev1.ResourceList{
	corev1.ResourceCPU:    resource.MustParse("100m"),
	corev1.ResourceMemory: resource.MustParse("200Mi"),
}

// load is what the Pods on the node and this one ask for; as asked, or with what containers get that ask for nothing.
func (c *cluster) load(p *corev1.Pod, n *corev1.Node, name corev1.ResourceName, how int) int64 {
	sum := int64(0)
	for _, other := range append(c.taking(n), p) {
		sum += amount(c.requests(other, how), name)
	}
	return sum
}

// counts reports whether a resource counts in a score of the Pod: one that not every node has counts if the Pod
// requests it.
func (c *cluster) counts(p *corev1.Pod, name corev1.ResourceName) bool {
	switch name {
	case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
		return true
	case corev1.ResourcePods:
		return false
	}
	return amount(c.requests(p, asAsked), name) > 0
}

// room is the weighted mean of the scores of resources; without a strategy, that of the shares that would be left.
func (c *cluster) room(p *corev1.Pod, n *corev1.Node) int64 {
	weights := c.weights
	if weights == nil {
		weights = map[corev1.ResourceName]int64{corev1.ResourceCPU: 1, corev1.ResourceMemory: 1}
	}
	var sum, all int64
	for name, weight := range weights {
		capacity := amount(n.Status.Allocatable, name)
		if capacity == 0 || !c.counts(p, name) {
			continue
		}
		how := asAsked
		if name == corev1.ResourceCPU || name == corev1.ResourceMemory {
			how = withDefaults
		}
		used := c.load(p, n, name, how)
		score := max(0, capacity-used) * 100 / capacity
		if c.resource != nil {
			score = c.resource(used, capacity)
		}
		if score == 0 && c.positive {
			continue
		}
		sum, all = sum+score*weight, all+weight
	}
	switch {
	case all == 0:
		return 0
	case c.positive:
		return int64(math.Round(float64(sum) / float64(all)))
	}
	return sum / all
}

// balanced falls with how far the used shares of resources are from their mean.
func (c *cluster) balanced(p *corev1.Pod, n *corev1.Node) int64 {
	names := c.even
	if names == nil {
		names = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}
	}
	var shares []float64
	mean, asks := 0.0, false
	for _, name := range names {
		if !c.counts(p, name) {
			continue
		}
		asks = asks || amount(c.requests(p, asAsked), name) > 0
		if capacity := amount(n.Status.Allocatable, name); capacity > 0 {
			shares = append(shares, min(1, float64(c.load(p, n, name, asAsked))/float64(capacity)))
			mean += shares[len(shares)-1]
		}
	}
	mean /= float64(len(shares))
	variance := 0.0
	for _, share := range shares {
		variance += (share - mean) * (share - mean)
	}
	switch {
	case !asks:
		return 0
	case len(shares) == 0:
		return 100
	case len(shares) == 2: // without the roundings of squares
		return int64((1 - math.Abs(shares[0]-shares[1])/2) * 100)
	}
	return int64((1 - math.Sqrt(variance/float64(len(shares)))) * 100)
}
