package storage

import (
	"context"

	"google.golang.org/grpc/metadata"
	"k8s.io/apimachinery/pkg/watch"
	genericstorage "k8s.io/apiserver/pkg/storage"
)

// apart is the store of a resource without a watch cache. The etcd client puts watches whose contexts have the same
// metadata into one stream, and etcd answers a request for progress to all watches of a stream. Those of clients have
// another stream than those of the caches, which ask for progress: they would be sent bookmarks that nobody asked for.
type apart struct{ genericstorage.Interface }

// Watch implements storage.Interface.
func (a apart) Watch(ctx context.Context, key string, opts genericstorage.ListOptions) (watch.Interface, error) {
	return a.Interface.Watch(metadata.AppendToOutgoingContext(ctx, "keelson-watch-of", "client"), key, opts)
}
