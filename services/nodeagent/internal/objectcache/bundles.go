package objectcache

import (
	"context"

	certificatesv1 "k8s.io/api/certificates/v1"
)

// TrustBundle implements volume.Sources.
func (c *Cache) TrustBundle(ctx context.Context, name string) (*certificatesv1.ClusterTrustBundle, error) {
	object, err := c.get(ctx, key{clusterTrustBundle, "", name})
	if err != nil {
		return nil, err
	}
	return object.(*certificatesv1.ClusterTrustBundle), nil
}

// TrustBundles implements volume.Sources.
func (c *Cache) TrustBundles(ctx context.Context, signer string) ([]certificatesv1.ClusterTrustBundle, error) {
	list, err := c.get(ctx, key{signerTrustBundles, "", signer})
	if err != nil {
		return nil, err
	}
	return list.(*certificatesv1.ClusterTrustBundleList).Items, nil
}
