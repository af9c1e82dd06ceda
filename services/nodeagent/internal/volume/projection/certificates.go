package projection

import (
	"context"
	"errors"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"keelson.dev/services/nodeagent/internal/volume"
)

// Certificates returns the certificates of the bundles that the source selects, in PEM; none if an optional source
// selects no bundle.
func Certificates(ctx context.Context, sources volume.Sources, pod types.UID,
	source *corev1.ClusterTrustBundleProjection) ([]byte, error) {
	optional := ptr.Deref(source.Optional, false)
	switch {
	case source.Name != nil:
		bundle, err := sources.TrustBundle(ctx, *source.Name)
		if optional && apierrors.IsNotFound(err) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		return join(pod, bundle), nil
	case source.SignerName != nil:
		bundles, err := ofSigner(ctx, sources, *source.SignerName, source.LabelSelector)
		if err != nil {
			return nil, err
		}
		if len(bundles) == 0 && !optional {
			return nil, noneSelected(*source.SignerName, source.LabelSelector)
		}
		return join(pod, bundles...), nil
	}
	return nil, errors.New("clusterTrustBundle: either name or signerName must be specified")
}

func ofSigner(ctx context.Context, sources volume.Sources, signer string,
	by *metav1.LabelSelector) ([]*certificatesv1.ClusterTrustBundle, error) {
	all, err := sources.TrustBundles(ctx, signer)
	if err != nil {
		return nil, err
	}
	return selected(all, by)
}
