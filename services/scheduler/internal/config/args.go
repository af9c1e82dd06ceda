package config

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	schedulerv1 "k8s.io/kube-scheduler/config/v1"

	"keelson.dev/services/scheduler/internal/rules/interpodaffinity"
	"keelson.dev/services/scheduler/internal/rules/podtopologyspread"
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
