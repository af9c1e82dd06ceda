package app

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"keelson.dev/kit/follow"
	"keelson.dev/services/nodeagent/internal/serviceproxy"
)

// watches are what the node follows besides its Pods: its own Node, and all Services, whose addresses containers
// get as variables.
type watches struct {
	node    cache.SharedIndexInformer
	service cache.SharedIndexInformer
	// observed reports whether the initial Node was handled.
	observed cache.InformerSynced
	// slices are nil unless the agent carries Services.
	slices cache.SharedIndexInformer
	// nodes are all Nodes, trimmed to what other nodes need; nil until a part needs them.
	nodes    cache.SharedIndexInformer
	client   kubernetes.Interface
	services func(namespace string) []*corev1.Service
}

func newWatches(client kubernetes.Interface, nodeName string) (*watches, error) {
	own := informers.NewSharedInformerFactoryWithOptions(client, 0,
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermEqualSelector("metadata.name", nodeName).String()
		}))
	all := informers.NewSharedInformerFactory(client, 0)
	w := &watches{node: own.Core().V1().Nodes().Informer(), service: all.Core().V1().Services().Informer(),
		client: client}
	if err := w.service.SetTransform(trimService); err != nil {
		return nil, fmt.Errorf("watching Services: %w", err)
	}
	lister := all.Core().V1().Services().Lister()
	w.services = func(namespace string) []*corev1.Service { return servicesFor(lister, namespace) }
	return w, nil
}

// followSlices makes run follow the EndpointSlices whose traffic Service proxies carry.
func (w *watches) followSlices() error {
	factory := informers.NewSharedInformerFactoryWithOptions(w.client, 0,
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = serviceproxy.SliceSelector }),
		informers.WithTransform(serviceproxy.Trim()))
	w.slices = factory.Discovery().V1().EndpointSlices().Informer()
	return w.slices.AddIndexers(serviceproxy.Indexers)
}

// followNodes makes run follow all Nodes, for the parts that need to know how to reach them.
func (w *watches) followNodes() cache.SharedIndexInformer {
	if w.nodes == nil {
		w.nodes = informers.NewSharedInformerFactoryWithOptions(w.client, 0, informers.WithTransform(trimNode)).
			Core().V1().Nodes().Informer()
	}
	return w.nodes
}

// observe makes run call set for each state of the Node.
func (w *watches) observe(set func(*corev1.Node)) error {
	observed, err := w.node.AddEventHandler(follow.Handler(set, func(*corev1.Node) {}))
	if err != nil {
		return fmt.Errorf("watching the Node: %w", err)
	}
	w.observed = observed.HasSynced
	return nil
}

// run follows until ctx ends.
func (w *watches) run(ctx context.Context) {
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() { w.node.RunWithContext(ctx) })
	if w.slices != nil {
		all.Go(func() { w.slices.RunWithContext(ctx) })
	}
	if w.nodes != nil {
		all.Go(func() { w.nodes.RunWithContext(ctx) })
	}
	w.service.RunWithContext(ctx)
}

// synced waits until the initial Node was handled and all Services are known; it reports whether that happened
// before ctx ended.
func (w *watches) synced(ctx context.Context) bool {
	return cache.WaitForCacheSync(ctx.Done(), w.observed, w.service.HasSynced)
}

// servicesFor returns the Services of a namespace and the API server's own.
func servicesFor(lister listers.ServiceLister, namespace string) []*corev1.Service {
	out, err := lister.Services(namespace).List(labels.Everything())
	if err != nil {
		return nil // a cache in memory does not fail
	}
	if namespace != metav1.NamespaceDefault {
		if master, err := lister.Services(metav1.NamespaceDefault).Get("kubernetes"); err == nil {
			out = append(out, master)
		}
	}
	return out
}
