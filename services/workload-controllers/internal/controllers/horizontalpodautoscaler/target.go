package horizontalpodautoscaler

import (
	"context"
	"fmt"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"keelson.dev/services/workload-controllers/internal/scales"
)

// groups are the API groups of the kinds that an autoscaler may name without a group.
var groups = map[string]string{"Deployment": "apps", "ReplicaSet": "apps", "StatefulSet": "apps"}

// find reads the scale of an autoscaler's target.
func (c *Controller) find(ctx context.Context, a *autoscalingv2.HorizontalPodAutoscaler) Target {
	ref := &a.Spec.ScaleTargetRef
	version, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		return Target{Err: fmt.Errorf("invalid API version in scale target reference: %w", err)}
	}
	group := version.Group
	if ref.APIVersion == "" {
		group = groups[ref.Kind]
	}
	mappings, err := c.scales.Mappings(schema.GroupKind{Group: group, Kind: ref.Kind})
	if err != nil {
		return Target{Err: fmt.Errorf("unable to determine resource for scale target reference: %w", err)}
	}
	found, err := c.scales.Read(ctx, mappings, a.Namespace, ref.Name)
	if err != nil {
		return Target{Err: err}
	}
	return targetOf(found)
}

func targetOf(found scales.Found) Target {
	target := Target{Scale: found.Scale, Resource: found.Resource}
	target.Selector, target.SelectorErr = labels.Parse(found.Scale.Status.Selector)
	if target.SelectorErr == nil && found.Scale.Status.Selector == "" {
		target.SelectorErr = errNoSelector
	}
	return target
}
