package resource

import (
	"fmt"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/fieldcheck"
)

// defaultReplicas is how many replicas a kind wants that leaves their number out.
const defaultReplicas = 1

// Replicated says where /scale finds a kind's replicas.
type Replicated[O Object] struct {
	// Desired is the field with the number of replicas that are wanted, spec.replicas.
	Desired func(O) **int32
	// Existing is how many there are.
	Existing func(O) int32
	// Selector selects the replicas.
	Selector func(O) *metav1.LabelSelector
}

// Of is the Scale of an object.
func (r Replicated[O]) Of(obj O) (*autoscalingv1.Scale, error) {
	selector, err := metav1.LabelSelectorAsSelector(r.Selector(obj))
	if err != nil {
		return nil, fmt.Errorf("reading the selector of %s: %w", obj.GetName(), err)
	}
	return &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{
			Name:              obj.GetName(),
			Namespace:         obj.GetNamespace(),
			UID:               obj.GetUID(),
			ResourceVersion:   obj.GetResourceVersion(),
			CreationTimestamp: obj.GetCreationTimestamp(),
		},
		Spec:   autoscalingv1.ScaleSpec{Replicas: ptr.Deref(*r.Desired(obj), defaultReplicas)},
		Status: autoscalingv1.ScaleStatus{Replicas: r.Existing(obj), Selector: selector.String()},
	}, nil
}

// ValidateScale returns what is wrong with a Scale as the successor of old.
func ValidateScale(scale, old *autoscalingv1.Scale) field.ErrorList {
	var errs field.ErrorList
	if scale.Name != old.Name {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), scale.Name, "must be "+old.Name))
	}
	return append(errs, fieldcheck.NonNegative(scale.Spec.Replicas, field.NewPath("spec", "replicas"))...)
}
