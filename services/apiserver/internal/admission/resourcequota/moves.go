package resourcequota

import (
	"math"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apiserver/pkg/admission"
	libraryquota "k8s.io/apiserver/pkg/admission/plugin/resourcequota"
	libraryapi "k8s.io/apiserver/pkg/admission/plugin/resourcequota/apis/resourcequota"
	quotav1 "k8s.io/apiserver/pkg/quota/v1"
)

// checkMove refuses an update that moves an object to where it is limited and no quota allows it.
func (p *Plugin) checkMove(a admission.Attributes) error {
	evaluator := p.kinds.Get(a.GetResource().GroupResource())
	if len(p.limited.LimitedResources) == 0 || !moves(evaluator, a) {
		return nil
	}
	quotas, err := p.quotas.GetQuotas(a.GetNamespace())
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	return allowMove(evaluator, quotas, a, p.limited.LimitedResources)
}

// moves reports whether a request moves an object of a kind that has scopes.
func moves(evaluator quotav1.Evaluator, a admission.Attributes) bool {
	scoped, ok := evaluator.(interface {
		moves(a admission.Attributes) bool
	})
	return ok && scoped.moves(a)
}

// allowMove holds an object that moves to the limits as if it were new. By itself the library holds to them what an
// update adds to what an object takes, and a move adds nothing.
func allowMove(evaluator quotav1.Evaluator, quotas []corev1.ResourceQuota, a admission.Attributes,
	limited []libraryapi.LimitedResource) error {
	_, err := libraryquota.CheckRequest(withRoom(quotas), asNew{a}, evaluator, limited)
	return err
}

// withRoom are the quotas with room for everything, so that they only tell what is allowed at all.
func withRoom(quotas []corev1.ResourceQuota) []corev1.ResourceQuota {
	roomy := make([]corev1.ResourceQuota, len(quotas))
	for i := range quotas {
		quotas[i].DeepCopyInto(&roomy[i])
		for name := range roomy[i].Status.Hard {
			roomy[i].Status.Hard[name] = *resource.NewQuantity(math.MaxInt64, resource.DecimalSI)
		}
	}
	return roomy
}

// asNew is an update that the library takes for a create. Of a status nothing is created: what one reports has happened
// already, and is not refused.
type asNew struct{ admission.Attributes }

// GetOperation implements Attributes.
func (asNew) GetOperation() admission.Operation { return admission.Create }
