package projection

import (
	"bytes"
	"crypto/sha256"
	"encoding/pem"
	"fmt"
	"maps"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/kit/trustbundle"
)

// selected returns the bundles that the selector matches: none without a selector, all with an empty one.
func selected(bundles []certificatesv1.ClusterTrustBundle,
	by *metav1.LabelSelector) ([]*certificatesv1.ClusterTrustBundle, error) {
	selector, err := metav1.LabelSelectorAsSelector(by)
	if err != nil {
		return nil, fmt.Errorf("labelSelector: %w", err)
	}
	var found []*certificatesv1.ClusterTrustBundle
	for i := range bundles {
		if selector.Matches(labels.Set(bundles[i].Labels)) {
			found = append(found, &bundles[i])
		}
	}
	return found, nil
}

// noneSelected returns why no bundle of the signer is selected.
func noneSelected(signer string, by *metav1.LabelSelector) error {
	switch {
	case by == nil:
		return fmt.Errorf("no ClusterTrustBundle of the signer %s is selected: a labelSelector must say which", signer)
	case len(by.MatchLabels)+len(by.MatchExpressions) == 0:
		return fmt.Errorf("there is no ClusterTrustBundle of the signer %s", signer)
	}
	return fmt.Errorf("no ClusterTrustBundle of the signer %s has the labels %q", signer,
		metav1.FormatLabelSelector(by))
}

// join returns the certificates of the bundles in PEM, each once, without the text around them. Their order is the
// same for the life of the Pod and differs between Pods, so that no client comes to rely on it.
func join(pod types.UID, bundles ...*certificatesv1.ClusterTrustBundle) []byte {
	certificates := map[[sha256.Size]byte][]byte{}
	for _, bundle := range bundles {
		for block := range trustbundle.Blocks(bundle.Spec.TrustBundle) {
			if block.Type == trustbundle.BlockType {
				certificates[sha256.Sum256(append([]byte(pod), block.Bytes...))] = block.Bytes
			}
		}
	}
	order := slices.SortedFunc(maps.Keys(certificates), func(a, b [sha256.Size]byte) int {
		return bytes.Compare(a[:], b[:])
	})
	var text []byte
	for _, hash := range order {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: trustbundle.BlockType, Bytes: certificates[hash]})...)
	}
	return text
}
