// Package podfeedtest fills a feed with the Pods of an API in memory.
package podfeedtest

import (
	"context"
	"testing"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"keelson.dev/services/workload-controllers/internal/podfeed"
)

// podCache is a cache of Pods alone.
type podCache struct {
	cache.Cache
	factory informers.SharedInformerFactory
}

// GetInformer returns the informer of Pods.
func (p podCache) GetInformer(context.Context, client.Object, ...cache.InformerGetOption) (cache.Informer, error) {
	return p.factory.Core().V1().Pods().Informer(), nil
}

// Connect makes the feed follow the Pods of the API until the test ends. It returns when the feed has all of them.
func Connect(t *testing.T, feed *podfeed.Feed, api kubernetes.Interface) {
	t.Helper()
	from := podCache{factory: informers.NewSharedInformerFactory(api, 0)}
	from.factory.Core().V1().Pods().Informer()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(func() { cancel(); from.factory.Shutdown() })
	from.factory.Start(ctx.Done())
	if err := feed.Connect(ctx, from); err != nil {
		t.Fatal(err)
	}
}
