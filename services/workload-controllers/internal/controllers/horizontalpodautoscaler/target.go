package horizontalpodautoscaler

import (
	"context"
	"fmt"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/scale"
)

// groups are those of the kinds that an autoscaler may name without one.
var groups = map[string]string{"Deployment": "apps", "ReplicaSet": "apps", "StatefulSet": "apps"}

// targets finds what is scaled, of whatever kind, by discovery and its scale.
type targets struct {
	mapper meta.RESTMapper
	scales scale.ScalesGetter
}

// find reads the scale of what an autoscaler is to scale. The first resource of its kind that has one counts.
func (t targets) find(ctx context.Context, a *autoscalingv2.HorizontalPodAutoscaler) Target {
	ref := &a.Spec.ScaleTargetRef
	version, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		return Target{Err: fmt.Errorf("invalid API version in scale target reference: %w", err)}
	}
	group := version.Group
	if ref.APIVersion == "" {
		group = groups[ref.Kind]
	}
	mappings, err := t.mapper.RESTMappings(schema.GroupKind{Group: group, Kind: ref.Kind})
	if err != nil {
		return Target{Err: fmt.Errorf("unable to determine resource for scale target reference: %w", err)}
	}
	var first error
	for _, mapping := range mappings {
		resource := mapping.Resource.GroupResource()
		found, err := t.scales.Scales(a.Namespace).Get(ctx, resource, ref.Name, metav1.GetOptions{})
		if err == nil {
			return targetOf(resource, found)
		}
		if first == nil {
			first = err
		}
	}
	return Target{Err: first}
}

func targetOf(resource schema.GroupResource, found *autoscalingv1.Scale) Target {
	target := Target{Resource: resource, Scale: found}
	target.Selector, target.SelectorErr = labels.Parse(found.Status.Selector)
	if target.SelectorErr == nil && found.Status.Selector == "" {
		target.SelectorErr = errNoSelector
	}
	return target
}

// write gives the target another number of replicas, provided that nobody else has changed it since it was read.
func (t targets) write(ctx context.Context, target Target, replicas int32) error {
	next := target.Scale.DeepCopy()
	next.Spec.Replicas = replicas
	_, err := t.scales.Scales(next.Namespace).Update(ctx, target.Resource, next, metav1.UpdateOptions{
		FieldManager: Name})
	return err
}
