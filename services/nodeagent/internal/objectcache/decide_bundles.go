package objectcache

import (
	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// bundlesAfter returns the list after a bundle was added, changed or removed. It does not change the held list, nil
// for none: others read it.
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
