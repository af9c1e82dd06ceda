// Package objectcache provides a node with the ConfigMaps, Secrets, claims with their PersistentVolumes,
// ClusterTrustBundles and service account tokens that its Pods refer to, and no others: while a registered Pod
// refers to it, each object is read and watched by its name, and the bundles of a signer by the signer's. So a node
// needs get and watch only on single objects, except for bundles, and its cost depends on the number of different
// objects, not on the size of the cluster.
package objectcache

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"keelson.dev/services/nodeagent/internal/podenv"
)

// Cache holds the objects. It implements volume.Sources and is safe for concurrent use. The returned objects are
// shared: never change them.
type Cache struct {
	client  kubernetes.Interface
	changed func(pod types.UID)
	tokens  tokens
	ctx     context.Context //nolint:containedctx // the life of all watches, not of one call
	running sync.WaitGroup

	mu      sync.Mutex // guards the fields below; entries have a lock of their own, locked after this one
	pods    map[types.UID]map[key]bool
	entries map[key]*entry
}

// New returns a cache whose watches end with ctx (Wait waits for them). changed is called, on a goroutine of the
// cache and without any lock, for each registered Pod with an object that has changed after it was first read; it
// must not block.
func New(ctx context.Context, client kubernetes.Interface, changed func(pod types.UID)) *Cache {
	return &Cache{
		client: client, changed: changed, ctx: ctx,
		tokens: tokens{client: client, held: map[tokenKey]held{}},
		pods:   map[types.UID]map[key]bool{}, entries: map[key]*entry{},
	}
}

// Register makes the cache follow what the Pod refers to now, and stop following what only an earlier version of it
// named. The volumes of its claims are followed until Unregister.
func (c *Cache) Register(pod *corev1.Pod) {
	wanted := references(pod)
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.pods[pod.UID]
	for key := range before {
		if key.kind == persistentVolume {
			wanted[key] = true
		}
	}
	c.pods[pod.UID] = wanted
	for key := range wanted {
		if !before[key] {
			c.follow(key, pod.UID)
		}
	}
	for key := range before {
		if !wanted[key] {
			c.leave(key, pod.UID)
		}
	}
}

// Unregister forgets the Pod, its tokens, and the objects that no other Pod names. It is idempotent.
func (c *Cache) Unregister(pod types.UID) {
	c.tokens.forget(pod)
	c.mu.Lock()
	defer c.mu.Unlock()
	for key := range c.pods[pod] {
		c.leave(key, pod)
	}
	delete(c.pods, pod)
}

// Wait returns when all watches have ended after the end of the cache's context.
func (c *Cache) Wait() { c.running.Wait() }

func (c *Cache) follow(key key, pod types.UID) {
	e := c.entries[key]
	if e == nil {
		ctx, cancel := context.WithCancel(c.ctx)
		e = &entry{key: key, from: resourceOf(c.client, key), cancel: cancel, read: make(chan struct{}),
			pods:    map[types.UID]bool{},
			changed: c.changed}
		c.entries[key] = e
		c.running.Go(func() { e.run(ctx) })
	}
	e.addPod(pod)
}

func (c *Cache) leave(key key, pod types.UID) {
	e := c.entries[key]
	if e != nil && e.removePod(pod) == 0 {
		e.cancel()
		delete(c.entries, key)
	}
}

// ConfigMap implements volume.Sources.
func (c *Cache) ConfigMap(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error) {
	object, err := c.get(ctx, key{configMap, namespace, name})
	if err != nil {
		return nil, err
	}
	return object.(*corev1.ConfigMap), nil
}

// Secret implements volume.Sources.
func (c *Cache) Secret(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	object, err := c.get(ctx, key{secret, namespace, name})
	if err != nil {
		return nil, err
	}
	return object.(*corev1.Secret), nil
}

// Claim implements claim.Objects.
func (c *Cache) Claim(ctx context.Context, namespace, name string) (*corev1.PersistentVolumeClaim, error) {
	object, err := c.get(ctx, key{persistentVolumeClaim, namespace, name})
	if err != nil {
		return nil, err
	}
	return object.(*corev1.PersistentVolumeClaim), nil
}

// PersistentVolume implements claim.Objects. A registered Pod makes the cache follow the volume from the first call on.
func (c *Cache) PersistentVolume(ctx context.Context, pod types.UID, name string) (*corev1.PersistentVolume, error) {
	key := key{persistentVolume, "", name}
	c.mu.Lock()
	if known := c.pods[pod]; known != nil && !known[key] {
		known[key] = true
		c.follow(key, pod)
	}
	c.mu.Unlock()
	object, err := c.get(ctx, key)
	if err != nil {
		return nil, err
	}
	return object.(*corev1.PersistentVolume), nil
}

// RuntimeHandler returns the handler of a runtime class. It never changes, so that the class is not followed.
func (c *Cache) RuntimeHandler(ctx context.Context, class string) (string, error) {
	found, err := c.client.NodeV1().RuntimeClasses().Get(ctx, class, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("failed to get sandbox runtime: %w", err)
	}
	return found.Handler, nil
}

// ServiceAccount implements credentialprovider.Accounts. A node may read accounts of its Pods but not watch them.
func (c *Cache) ServiceAccount(ctx context.Context, namespace, name string) (*corev1.ServiceAccount, error) {
	return c.client.CoreV1().ServiceAccounts(namespace).Get(ctx, name, metav1.GetOptions{})
}

// get waits for the first answer of the API server, which may be an error, unless ctx ends before.
func (c *Cache) get(ctx context.Context, key key) (any, error) {
	c.mu.Lock()
	e := c.entries[key]
	c.mu.Unlock()
	if e == nil {
		return nil, fmt.Errorf("object %q/%q not registered", key.namespace, key.name)
	}
	select {
	case <-e.read:
		return e.current()
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for %s %q: %w", key.kind, key.name, ctx.Err())
	}
}

// Environment returns all that the container's environment refers to, in the form of podenv.Input. Register the Pod
// first.
func (c *Cache) Environment(ctx context.Context, pod *corev1.Pod,
	container *corev1.Container) (map[string]podenv.Object[corev1.ConfigMap], map[string]podenv.Object[corev1.Secret]) {
	configMaps, secrets := map[string]podenv.Object[corev1.ConfigMap]{}, map[string]podenv.Object[corev1.Secret]{}
	for key := range environment(pod.Namespace, container) {
		switch key.kind {
		case configMap:
			object, err := c.ConfigMap(ctx, key.namespace, key.name)
			configMaps[key.name] = podenv.Object[corev1.ConfigMap]{Value: object, Err: err}
		case secret:
			object, err := c.Secret(ctx, key.namespace, key.name)
			secrets[key.name] = podenv.Object[corev1.Secret]{Value: object, Err: err}
		}
	}
	return configMaps, secrets
}

func notFound(key key) error {
	return apierrors.NewNotFound(corev1.Resource(string(key.kind)), key.name)
}
