package trustbundles

import (
	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// attests reports whether a write says something in the name of a signer. Nil for old is a new bundle. A write that
// only changes owners and finalizers, as the garbage collector's, says nothing, and neither does a write of what is
// stored.
func attests(updated, old *certificatesv1.ClusterTrustBundle) bool {
	if updated.Spec.SignerName == "" {
		return false
	}
	if old == nil {
		return true
	}
	same := *updated
	same.OwnerReferences, same.Finalizers = old.OwnerReferences, old.Finalizers
	same.ManagedFields = old.ManagedFields
	return !equality.Semantic.DeepEqual(&same, old)
}
