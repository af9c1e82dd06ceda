package objectcache

import (
	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// bundlesAfter is the list in which a bundle is added or changed, or from which it is gone. The list that is held, nil
// for none, stays as it is: others read it.
func bundlesAfter(held *certificatesv1.ClusterTrustBundleList, event watch.EventType,
	bundle *certificatesv1.ClusterTrustBundle) *certificatesv1.ClusterTrustBundleList {
	next := &certificatesv1.ClusterTrustBundleList{}
	next.ResourceVersion = bundle.ResourceVersion
	if held != nil {
		for i := range held.Items {
			if held.Items[i].Name != bundle.Name {
				next.Items = append(next.Items, held.Items[i])
			}
		}
	}
	if event != watch.Deleted {
		next.Items = append(next.Items, *bundle)
	}
	return next
}
