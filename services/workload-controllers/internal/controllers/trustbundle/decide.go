package trustbundle

import (
	"crypto/sha256"
	"fmt"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/kit/trustbundle"
)

// hashBytes is how many bytes of the certificates' hash the bundle's name contains.
const hashBytes = 12

type bundle = certificatesv1.ClusterTrustBundle

// Input is all that a decision depends on. Decide changes none of it.
type Input struct {
	// Bundles are the bundles of the signer.
	Bundles []bundle
	// RootCA is what the bundle must hold, in PEM.
	RootCA string
}

// Plan names the effect of one pass: at most one of the three is set.
type Plan struct {
	Create, Update *bundle
	Delete         []*bundle
}

// Decide returns what one pass has to do. It deletes bundles of earlier authorities only once the current bundle
// exists, so that there is always one.
func Decide(in Input) Plan {
	var plan Plan
	name := nameOf(in.RootCA)
	stands := false
	for i := range in.Bundles {
		found := &in.Bundles[i]
		switch {
		case found.DeletionTimestamp != nil:
			// It keeps its name until its finalizers are gone, and is recreated then.
			stands = stands || found.Name == name
		case found.Name != name:
			plan.Delete = append(plan.Delete, found)
		case found.Spec.TrustBundle != in.RootCA:
			restored := found.DeepCopy()
			restored.Spec.TrustBundle = in.RootCA
			return Plan{Update: restored}
		default:
			stands = true
		}
	}
	if !stands {
		return Plan{Create: &bundle{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: certificatesv1.ClusterTrustBundleSpec{SignerName: trustbundle.KubeAPIServerServing,
				TrustBundle: in.RootCA},
		}}
	}
	return plan
}

// nameOf returns the name of the bundle that holds these certificates.
func nameOf(rootCA string) string {
	hash := sha256.Sum256([]byte(rootCA))
	return fmt.Sprintf("%s%x", trustbundle.NamePrefix(trustbundle.KubeAPIServerServing), hash[:hashBytes])
}
