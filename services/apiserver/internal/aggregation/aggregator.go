package aggregation

import (
	"context"
	"net"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/discovery"
	discoveryendpoint "k8s.io/apiserver/pkg/endpoints/discovery/aggregated"
	"k8s.io/client-go/util/workqueue"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	apiregistrationclient "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset/typed/apiregistration/v1"

	"keelson.dev/services/apiserver/internal/frontproxy"
)

const (
	// checkInterval is how often a server that answers is asked again; one that does not, after retryFirst up to
	// retryLast. A request that fails wakes the check at once.
	checkInterval = 30 * time.Second
	retryFirst    = 500 * time.Millisecond
	retryLast     = 15 * time.Second
)

// Objects are the Services and what stands behind them.
type Objects interface {
	// Service is nil where there is none of the name.
	Service(ctx context.Context, namespace, name string) (*corev1.Service, error)
	Slices(ctx context.Context, namespace, service string) ([]discoveryv1.EndpointSlice, error)
}

// Config is what an Aggregator works with.
type Config struct {
	APIServices apiregistrationclient.APIServiceInterface
	Objects     Objects
	// Served are the versions of the groups that the apiserver serves itself.
	Served map[string][]string
	// Identity is shown to the other servers.
	Identity *frontproxy.Identity
	// CheckAddress refuses addresses, IP:PORT, to which nothing is handed on. Dial, if set, connects in place of that.
	CheckAddress func(address string) error
	Dial         func(ctx context.Context, network, address string) (net.Conn, error)
	// Groups and Resources are what discovery tells at /apis, in its two forms.
	Groups     discovery.GroupManager
	Resources  discoveryendpoint.ResourceManager
	Serializer runtime.NegotiatedSerializer
	Log        *zap.Logger
}

// Aggregator hands requests on. It is safe for concurrent use.
type Aggregator struct {
	Config
	queue workqueue.TypedRateLimitingInterface[string]

	mu sync.RWMutex
	// extensions are by the names of the APIServices, which validation makes those of the versions.
	extensions map[string]*extension
	// told are the resources of each version that answered, the last time that it did.
	told map[schema.GroupVersion][]apidiscoveryv2.APIResourceDiscovery
	// answering are those that answered when they were last asked, each with a number of its own for each time that it
	// began to.
	answering map[*extension]uint64
	begun     uint64
	// defined are the versions of each group that CustomResourceDefinitions have.
	defined map[string][]string
}

// New returns an Aggregator that knows of no APIService yet.
func New(c Config) *Aggregator {
	orderBuiltIn(c)
	c.Resources = c.Resources.WithSource(discoveryendpoint.AggregatorSource)
	return &Aggregator{
		Config: c, extensions: map[string]*extension{},
		told:      map[schema.GroupVersion][]apidiscoveryv2.APIResourceDiscovery{},
		answering: map[*extension]uint64{},
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[string](retryFirst, retryLast)),
	}
}

// orderBuiltIn puts what the apiserver serves itself where its APIServices say, so that no defined kind of another
// group hides a kind of the same name.
func orderBuiltIn(c Config) {
	builtIn := c.Resources.WithSource(discoveryendpoint.BuiltinSource)
	for group, versions := range c.Served {
		for _, name := range versions {
			if at, has := priorities[schema.GroupVersion{Group: group, Version: name}]; has {
				builtIn.SetGroupVersionPriority(metav1.GroupVersion{Group: group, Version: name}, int(at.group),
					int(at.version))
			}
		}
	}
}

// Set takes an APIService as it is now.
func (a *Aggregator) Set(s *apiregistration.APIService) {
	a.mu.Lock()
	defer a.mu.Unlock()
	old := a.extensions[s.Name]
	if old != nil && old.uid == s.UID && equality.Semantic.DeepEqual(old.spec, s.Spec) {
		return
	}
	_, builtIn := a.Served[s.Spec.Group]
	e := newExtension(s, builtIn, a.Config)
	a.extensions[s.Name] = e
	if old != nil {
		delete(a.answering, old)
		old.close()
	}
	if !e.local {
		a.tell(e, apidiscoveryv2.DiscoveryFreshnessStale)
		a.tellGroup(e.spec.Group)
	} else if old != nil && !old.local {
		a.untell(old)
	}
	if !e.local || !a.saysLocal(e, s.Status) {
		a.wake(e.name)
	}
}

// saysLocal reports whether a status has the verdict of an APIService that is not proxied. There is one of these for
// each version that the apiserver serves itself, and none of them needs a check.
func (a *Aggregator) saysLocal(e *extension, status apiregistration.APIServiceStatus) bool {
	_, changed := decideStatus(status, a.local(e), time.Time{})
	return !changed
}

// local is the verdict of an APIService that is not proxied.
func (a *Aggregator) local(e *extension) Verdict {
	return decideLocal(&e.spec, slices.Sorted(slices.Values(a.Served[e.spec.Group])))
}

// Delete takes an APIService away.
func (a *Aggregator) Delete(s *apiregistration.APIService) {
	a.mu.Lock()
	defer a.mu.Unlock()
	old := a.extensions[s.Name]
	if old == nil || old.uid != s.UID {
		return
	}
	delete(a.extensions, s.Name)
	delete(a.answering, old)
	old.close()
	if !old.local {
		a.untell(old)
	}
}

// Define takes the versions of each group that CustomResourceDefinitions have now: nothing is handed on for them, but a
// group may have versions of both kinds.
func (a *Aggregator) Define(versions map[string][]string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	last := a.defined
	a.defined = versions
	for group := range last {
		if len(versions[group]) == 0 {
			a.tellGroup(group)
		}
	}
	for group := range versions {
		if !slices.Equal(versions[group], last[group]) {
			a.tellGroup(group)
		}
	}
}

// wake makes the named APIService be looked at now.
func (a *Aggregator) wake(name string) { a.queue.Add(name) }

// find returns nil where there is no APIService of the name.
func (a *Aggregator) find(name string) *extension {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.extensions[name]
}

// group is what is told of the named group.
func (a *Aggregator) group(name string) (metav1.APIGroup, bool) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.groupLocked(name)
}

func (a *Aggregator) groupLocked(name string) (metav1.APIGroup, bool) {
	var specs []*apiregistration.APIServiceSpec
	for _, e := range a.extensions {
		if e.spec.Group == name && !e.local {
			specs = append(specs, &e.spec)
		}
	}
	return decideGroup(name, specs, a.defined[name])
}

// answered notes what the server of e said, unless another one has taken its place.
func (a *Aggregator) answered(e *extension, resources []apidiscoveryv2.APIResourceDiscovery, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.extensions[e.name] != e {
		return
	}
	if err != nil {
		delete(a.answering, e)
		a.tell(e, apidiscoveryv2.DiscoveryFreshnessStale)
		return
	}
	if a.answering[e] == 0 {
		a.begun++
		a.answering[e] = a.begun
	}
	a.told[e.version()] = resources
	a.tell(e, apidiscoveryv2.DiscoveryFreshnessCurrent)
}

// tell publishes a version. The caller holds the lock.
func (a *Aggregator) tell(e *extension, freshness apidiscoveryv2.DiscoveryFreshness) {
	version := e.version()
	a.Resources.SetGroupVersionPriority(metav1.GroupVersion(version), int(e.spec.GroupPriorityMinimum),
		int(e.spec.VersionPriority))
	a.Resources.AddGroupVersion(version.Group, apidiscoveryv2.APIVersionDiscovery{Version: version.Version,
		Freshness: freshness, Resources: slices.Clone(a.told[version])})
}

// untell takes a version out of discovery. The caller holds the lock.
func (a *Aggregator) untell(e *extension) {
	version := e.version()
	delete(a.told, version)
	a.Resources.RemoveGroupVersion(metav1.GroupVersion(version))
	a.tellGroup(version.Group)
}

// tellGroup says at /apis which versions a group has. Groups of the apiserver's own it says itself. The caller holds
// the lock.
func (a *Aggregator) tellGroup(name string) {
	if _, builtIn := a.Served[name]; builtIn {
		return
	}
	if group, ok := a.groupLocked(name); ok {
		a.Groups.AddGroup(group)
	} else {
		a.Groups.RemoveGroup(name)
	}
}
