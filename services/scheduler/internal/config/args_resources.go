package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	schedulerv1 "k8s.io/kube-scheduler/config/v1"

	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/rules"
	"keelson.dev/services/scheduler/internal/rules/balancedallocation"
	"keelson.dev/services/scheduler/internal/rules/noderesourcesfit"
)

// fitArgs reads the arguments of NodeResourcesFit.
func (p *profile) fitArgs(args *schedulerv1.NodeResourcesFitArgs) error {
	for i, name := range args.IgnoredResources {
		if err := checkResource(name); err != nil {
			return fmt.Errorf("ignoredResources[%d]: %w", i, err)
		}
	}
	for i, group := range args.IgnoredResourceGroups {
		if group == "" || strings.Contains(group, "/") {
			return fmt.Errorf("ignoredResourceGroups[%d]: %q, it must be what stands before the slash of resources, "+
				"such as \"example.com\"", i, group)
		}
	}
	fit, err := readStrategy(args.ScoringStrategy)
	if err != nil {
		return fmt.Errorf("scoringStrategy.%w", err)
	}
	fit.Ignored = func(name corev1.ResourceName) bool {
		group, _, _ := strings.Cut(string(name), "/")
		return extended(string(name)) && (slices.Contains(args.IgnoredResources, string(name)) ||
			slices.Contains(p.ignored, string(name)) || slices.Contains(args.IgnoredResourceGroups, group))
	}
	p.replace(noderesourcesfit.Rule(fit))
	return nil
}

func checkResource(name string) error {
	if messages := validation.IsQualifiedName(name); len(messages) > 0 {
		return fmt.Errorf("%q: %s", name, strings.Join(messages, "; "))
	}
	return nil
}

// readStrategy returns how nodes are scored.
func readStrategy(s *schedulerv1.ScoringStrategy) (noderesourcesfit.Args, error) {
	fit := noderesourcesfit.Args{Weights: noderesourcesfit.DefaultWeights()}
	if s == nil {
		return fit, nil
	}
	if s.RequestedToCapacityRatio != nil && s.Type != schedulerv1.RequestedToCapacityRatio {
		return fit, fmt.Errorf("requestedToCapacityRatio: it needs type %q", schedulerv1.RequestedToCapacityRatio)
	}
	switch s.Type {
	case "", schedulerv1.LeastAllocated:
		fit.Strategy = noderesourcesfit.LeastAllocated
	case schedulerv1.MostAllocated:
		fit.Strategy = noderesourcesfit.MostAllocated
	case schedulerv1.RequestedToCapacityRatio:
		line, err := readRatio(s.RequestedToCapacityRatio)
		if err != nil {
			return fit, fmt.Errorf("requestedToCapacityRatio.%w", err)
		}
		fit.Strategy, fit.Ratio = noderesourcesfit.RequestedToCapacityRatio(line), true
	default:
		return fit, fmt.Errorf("type: %q, it must be %q, %q or %q", s.Type, schedulerv1.LeastAllocated,
			schedulerv1.MostAllocated, schedulerv1.RequestedToCapacityRatio)
	}
	if len(s.Resources) == 0 {
		return fit, nil
	}
	fit.Weights = nil
	for i, spec := range s.Resources {
		weight, err := readWeight(spec)
		if err != nil {
			return fit, fmt.Errorf("resources[%d].%w", i, err)
		}
		fit.Weights = append(fit.Weights, weight)
	}
	return fit, nil
}

func readWeight(spec schedulerv1.ResourceSpec) (noderesourcesfit.Weight, error) {
	w := noderesourcesfit.Weight{Weight: spec.Weight}
	if err := checkResource(spec.Name); err != nil {
		return w, fmt.Errorf("name: %w", err)
	}
	if w.Weight == 0 {
		w.Weight = 1
	}
	if w.Weight < 1 || w.Weight > maxWeight {
		return w, fmt.Errorf("weight: %d, it must be from 1 to %d", w.Weight, maxWeight)
	}
	if r := slices.Index(columns.BasicNames[:], corev1.ResourceName(spec.Name)); r >= 0 {
		w.Resource = columns.Resource(r)
	} else {
		w.Name = corev1.ResourceName(spec.Name)
	}
	return w, nil
}

// The greatest utilization and score of a point of a shape.
const (
	maxUtilization = 100
	maxPointScore  = 10
)

func readRatio(ratio *schedulerv1.RequestedToCapacityRatioParam) ([]noderesourcesfit.Point, error) {
	if ratio == nil || len(ratio.Shape) == 0 {
		return nil, errors.New("shape: it must have at least one point")
	}
	return readShape(ratio.Shape)
}

func readShape(shape []schedulerv1.UtilizationShapePoint) ([]noderesourcesfit.Point, error) {
	var line []noderesourcesfit.Point
	for i, point := range shape {
		switch {
		case point.Utilization < 0 || point.Utilization > maxUtilization:
			return nil, fmt.Errorf("shape[%d].utilization: %d, it must be from 0 to %d", i, point.Utilization,
				maxUtilization)
		case i > 0 && point.Utilization <= shape[i-1].Utilization:
			return nil, fmt.Errorf("shape[%d].utilization: %d, it must be greater than that of the point before, "+
				"which is %d", i, point.Utilization, shape[i-1].Utilization)
		case point.Score < 0 || point.Score > maxPointScore:
			return nil, fmt.Errorf("shape[%d].score: %d, it must be from 0 to %d", i, point.Score, maxPointScore)
		}
		line = append(line, noderesourcesfit.Point{Utilization: int64(point.Utilization),
			Score: int64(point.Score) * rules.MaxScore / maxPointScore})
	}
	return line, nil
}

// balancedArgs reads the arguments of NodeResourcesBalancedAllocation.
func (p *profile) balancedArgs(args *schedulerv1.NodeResourcesBalancedAllocationArgs) error {
	var names []corev1.ResourceName
	for i, spec := range args.Resources {
		if err := checkResource(spec.Name); err != nil {
			return fmt.Errorf("resources[%d].name: %w", i, err)
		}
		name := corev1.ResourceName(spec.Name)
		switch {
		case spec.Weight != 0 && spec.Weight != 1:
			return fmt.Errorf("resources[%d].weight: %d, it must be 1", i, spec.Weight)
		case slices.Contains(names, name):
			return fmt.Errorf("resources[%d].name: %q stands twice", i, spec.Name)
		case len(names) == balancedallocation.MaxResources:
			return fmt.Errorf("resources: %d, there may be %d", len(args.Resources), balancedallocation.MaxResources)
		}
		names = append(names, name)
	}
	p.replace(balancedallocation.Rule(names...))
	return nil
}
