package pod

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"keelson.dev/kit/podspec"
	"keelson.dev/services/apiserver/internal/resource"
)

// ephemeralStrategy rules the writes of /ephemeralcontainers, the only way for such containers into a Pod.
var ephemeralStrategy = resource.Strategy[*corev1.Pod]{
	PrepareForUpdate: prepareForEphemeralUpdate,
	ValidateUpdate:   ValidateEphemeralUpdate,
	ResetFields:      []string{"status"},
}

// prepareForEphemeralUpdate takes all but the ephemeral containers from the old Pod.
func prepareForEphemeralUpdate(p, old *corev1.Pod) {
	requested := corev1.PodSpec{EphemeralContainers: p.Spec.EphemeralContainers}
	podspec.DropUnserved(&requested)
	p.Spec, p.Status = old.Spec, old.Status
	p.Spec.EphemeralContainers = requested.EphemeralContainers
	metav1.ResetObjectMetaForStatus(&p.ObjectMeta, &old.ObjectMeta)
	resource.RaiseGeneration(p, old, !apiequality.Semantic.DeepEqual(p.Spec, old.Spec))
}

// ValidateEphemeralUpdate lets ephemeral containers be added, and neither removed nor changed.
func ValidateEphemeralUpdate(p, old *corev1.Pod) field.ErrorList {
	errs := validateChanged(p, old)
	at := specPath.Child("ephemeralContainers")
	if _, mirror := p.Annotations[mirrorAnnotation]; mirror {
		return append(errs, field.Forbidden(at, "static pods do not support ephemeral containers"))
	}
	byName := make(map[string]*corev1.EphemeralContainer, len(p.Spec.EphemeralContainers))
	for i := range p.Spec.EphemeralContainers {
		byName[p.Spec.EphemeralContainers[i].Name] = &p.Spec.EphemeralContainers[i]
	}
	for i := range old.Spec.EphemeralContainers {
		before := &old.Spec.EphemeralContainers[i]
		switch after, kept := byName[before.Name]; {
		case !kept:
			errs = append(errs, field.Forbidden(at, fmt.Sprintf("existing ephemeral containers %q may not be removed\n",
				before.Name)))
		case !apiequality.Semantic.DeepEqual(before, after):
			errs = append(errs, field.Forbidden(at, fmt.Sprintf("existing ephemeral containers %q may not be changed\n",
				before.Name)))
		}
	}
	return errs
}
