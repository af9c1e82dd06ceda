package disruption

import (
	"fmt"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Intent is how many Pods one controller intends.
type Intent struct {
	// Replicas is how many it intends.
	Replicas int32
	// Kind and Name identify the controller.
	Kind, Name string
	// Err is why Replicas is unknown.
	Err error
}

// byScale returns the Intent of an owner from its scale; nil if the owner is gone, even if another object has its
// name.
func byScale(owner *metav1.OwnerReference, scale *autoscalingv1.Scale, err error) *Intent {
	switch {
	case apierrors.IsNotFound(err), err == nil && scale.UID != owner.UID:
		return nil
	case err != nil:
		return &Intent{Kind: owner.Kind, Name: owner.Name, Err: err}
	}
	return &Intent{Kind: owner.Kind, Name: owner.Name, Replicas: scale.Spec.Replicas}
}

// sum adds up the Intents, counting each controller once.
func sum(intents []Intent) (int, error) {
	seen, all := map[Intent]bool{}, 0
	for _, intent := range intents {
		named := Intent{Kind: intent.Kind, Name: intent.Name}
		switch {
		case seen[named]:
			continue
		case intent.Err != nil:
			return 0, fmt.Errorf("the %s %s, which controls selected Pods, does not say how many are intended: %w; "+
				"set .spec.minAvailable to a number", intent.Kind, intent.Name, intent.Err)
		}
		seen[named] = true
		all += int(intent.Replicas)
	}
	return all, nil
}
