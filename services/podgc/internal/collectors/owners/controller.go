package owners

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/lru"

	"keelson.dev/kit/client"
	"keelson.dev/kit/controller"
	"keelson.dev/kit/events"
	"keelson.dev/kit/rights"
	"keelson.dev/kit/wakeup"
	"keelson.dev/services/podgc/internal/podfeed"
)

// Name is the collector's.
const Name = "owners"

// workers is how many objects are decided on at once; most of the time of each is spent waiting for the server.
const workers = 20

// Registration describes the collector.
func Registration(feed *podfeed.Feed) controller.Registration {
	return controller.Registration{
		Name: Name, Explains: []string{explained},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch", "patch",
				"delete"}},
			rights.Events,
		},
		Setup: func(s *controller.Setup) (controller.Runnable, error) { return setup(s, feed) },
	}
}

func setup(s *controller.Setup, feed *podfeed.Feed) (controller.Runnable, error) {
	objects, err := client.Metadata(s.Config)
	if err != nil {
		return nil, err
	}
	server, err := discovery.NewDiscoveryClientForConfig(s.Config)
	if err != nil {
		return nil, fmt.Errorf("building the discovery client: %w", err)
	}
	c := &collector{graph: newGraph(), writer: &writer{client: objects, log: s.Log}}
	w := &watcher{
		pods: func(ctx context.Context, follower podfeed.Follower) (cache.InformerSynced, func(), error) {
			return feed.Follow(ctx, s.Cache, follower)
		},
		client: objects, server: server, failed: s.Failed, observe: c.observe, remove: c.remove,
		informed: map[schema.GroupVersionResource]informed{}, redefined: wakeup.New(),
	}
	c.lookup = &lookup{client: objects, resourceOf: w.resourceOf, absent: lru.New(rememberAbsent),
		misplaced: reportMisplaced(s.Recorder)}
	return controller.Build[types.UID](s, workers, c).
		Explain(c.explain).
		Queue(func(q queue) { c.revisit = q.Add }).
		Watch(w).
		Runnable()
}

// reportMisplaced emits an event about a cluster-scoped object whose owner is inside a namespace.
func reportMisplaced(recorder *events.Recorder) func(*Object, metav1.OwnerReference) {
	return func(dependent *Object, ref metav1.OwnerReference) {
		object := &corev1.ObjectReference{
			APIVersion: dependent.Resource.GroupVersion().String(), Kind: dependent.Kind, Name: dependent.Name,
			UID: dependent.UID,
		}
		recorder.Record(object, events.Warning("OwnerRefInvalidNamespace",
			"ownerReference to %s %s cannot be resolved: the owner lives in a namespace, this object does not",
			ref.Kind, ref.Name))
	}
}
