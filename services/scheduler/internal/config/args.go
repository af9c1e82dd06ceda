package config

import (
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	schedulerv1 "k8s.io/kube-scheduler/config/v1"

	"keelson.dev/services/scheduler/internal/rules"
	"keelson.dev/services/scheduler/internal/rules/interpodaffinity"
	nodes "keelson.dev/services/scheduler/internal/rules/nodeaffinity"
	"keelson.dev/services/scheduler/internal/rules/noderesourcesfit"
	"keelson.dev/services/scheduler/internal/rules/podtopologyspread"
	"keelson.dev/services/scheduler/internal/rules/volumebinding"
)

// spreadDefaults reads the arguments of PodTopologySpread.
func (p *profile) spreadDefaults(args *schedulerv1.PodTopologySpreadArgs) error {
	switch args.DefaultingType {
	case "", schedulerv1.SystemDefaulting:
		if len(args.DefaultConstraints) > 0 {
			return fmt.Errorf("defaultConstraints: the list must be empty with defaultingType %q",
				schedulerv1.SystemDefaulting)
		}
		return nil
	case schedulerv1.ListDefaulting:
	default:
		return fmt.Errorf("defaultingType: %q, it must be %q or %q", args.DefaultingType, schedulerv1.SystemDefaulting,
			schedulerv1.ListDefaulting)
	}
	for i := range args.DefaultConstraints {
		c := &args.DefaultConstraints[i]
		if err := checkDefault(c); err != nil {
			return fmt.Errorf("defaultConstraints[%d].%w", i, err)
		}
		for j := range i {
			if other := &args.DefaultConstraints[j]; other.TopologyKey == c.TopologyKey &&
				other.WhenUnsatisfiable == c.WhenUnsatisfiable {
				return fmt.Errorf("defaultConstraints[%d]: topologyKey %q with whenUnsatisfiable %q stands twice", i,
					c.TopologyKey, c.WhenUnsatisfiable)
			}
		}
	}
	p.replace(podtopologyspread.Rule(podtopologyspread.Defaults{Constraints: args.DefaultConstraints}))
	return nil
}

// affinityArgs reads the arguments of InterPodAffinity.
func (p *profile) affinityArgs(args *schedulerv1.InterPodAffinityArgs) error {
	a := interpodaffinity.Default()
	if w := args.HardPodAffinityWeight; w != nil {
		if *w < 0 || *w > maxWeight {
			return fmt.Errorf("hardPodAffinityWeight: %d, it must be from 0 to %d", *w, maxWeight)
		}
		a.HardPodAffinityWeight = int64(*w)
	}
	a.IgnorePreferredTermsOfExistingPods = args.IgnorePreferredTermsOfExistingPods
	p.replace(interpodaffinity.Rule(a))
	return nil
}

// addedAffinity reads the arguments of NodeAffinity.
func (p *profile) addedAffinity(args *schedulerv1.NodeAffinityArgs) error {
	added := args.AddedAffinity
	if added == nil {
		return nil
	}
	if terms := added.RequiredDuringSchedulingIgnoredDuringExecution; terms != nil {
		if _, err := nodeaffinity.NewNodeSelector(terms); err != nil {
			return fmt.Errorf("addedAffinity.requiredDuringSchedulingIgnoredDuringExecution: %w", err)
		}
		if len(terms.NodeSelectorTerms) == 0 {
			return errors.New(
				"addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms: it must " +
					"have at least one term")
		}
	}
	preferred := added.PreferredDuringSchedulingIgnoredDuringExecution
	if _, err := nodeaffinity.NewPreferredSchedulingTerms(preferred); err != nil {
		return fmt.Errorf("addedAffinity.preferredDuringSchedulingIgnoredDuringExecution: %w", err)
	}
	for i := range preferred {
		if w := preferred[i].Weight; w < 1 || w > maxWeight {
			return fmt.Errorf(
				"addedAffinity.preferredDuringSchedulingIgnoredDuringExecution[%d].weight: %d, it must be "+
					"from 1 to %d", i, w, maxWeight)
		}
	}
	p.replace(nodes.WithAdded(added))
	return nil
}

// bindingLine prefers the nodes with most storage left.
func bindingLine() []noderesourcesfit.Point {
	return []noderesourcesfit.Point{{Utilization: 0, Score: rules.MaxScore}, {Utilization: maxUtilization, Score: 0}}
}

// defaultBindTimeout is how long a Pod waits for its claims.
const defaultBindTimeout = 10 * time.Minute

// bindingArgs reads the arguments of VolumeBinding.
func (p *profile) bindingArgs(args *schedulerv1.VolumeBindingArgs) error {
	if len(args.Shape) > 0 {
		line, err := readShape(args.Shape)
		if err != nil {
			return err
		}
		p.replace(volumebinding.Rule(noderesourcesfit.RequestedToCapacityRatio(line)))
	}
	if s := args.BindTimeoutSeconds; s != nil {
		timeout, err := period("bindTimeoutSeconds", *s, 0)
		if err != nil {
			return err
		}
		p.bindTimeout = timeout
	}
	return nil
}

func checkDefault(c *corev1.TopologySpreadConstraint) error {
	switch {
	case c.MaxSkew <= 0:
		return fmt.Errorf("maxSkew: %d, it must be greater than 0", c.MaxSkew)
	case c.TopologyKey == "":
		return errors.New("topologyKey: it must not be empty")
	case c.WhenUnsatisfiable != corev1.DoNotSchedule && c.WhenUnsatisfiable != corev1.ScheduleAnyway:
		return fmt.Errorf("whenUnsatisfiable: %q, it must be %q or %q", c.WhenUnsatisfiable, corev1.DoNotSchedule,
			corev1.ScheduleAnyway)
	case c.LabelSelector != nil:
		return errors.New("labelSelector: it must be empty, the Services and controllers of a Pod say what is counted")
	case c.MinDomains != nil && (*c.MinDomains <= 0 || c.WhenUnsatisfiable != corev1.DoNotSchedule):
		return fmt.Errorf("minDomains: %d, it must be greater than 0 and needs whenUnsatisfiable %q", *c.MinDomains,
			corev1.DoNotSchedule)
	}
	return nil
}
