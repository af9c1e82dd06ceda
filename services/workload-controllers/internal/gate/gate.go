// Package gate lets a controller read its own writes: after a write it holds the object back until the cache shows
// the write, or something later. It waits for what was written, not for a number of events, so that an event that is
// lost, doubled or late cannot open it too early or keep it shut.
package gate

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"
)

// Seen reports whether a cache shows a write, or what came after it. It must not block.
type Seen func() bool

// Gate holds back owners with writes that have not been seen. It is safe for concurrent use.
type Gate struct {
	mu      sync.Mutex // guards pending
	pending map[types.UID]map[types.UID]Seen
}

// New returns a gate that is open for everyone.
func New() *Gate {
	return &Gate{pending: map[types.UID]map[types.UID]Seen{}}
}

// Await shuts the gate for the owner until the write to the object has been seen. A later write to the same object
// takes the place of an earlier one.
func (g *Gate) Await(owner, object types.UID, seen Seen) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.pending[owner] == nil {
		g.pending[owner] = map[types.UID]Seen{}
	}
	g.pending[owner][object] = seen
}

// IsOpen reports whether all the owner's writes have been seen.
func (g *Gate) IsOpen(owner types.UID) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	pending := g.pending[owner]
	for object, seen := range pending {
		if !seen() {
			return false
		}
		delete(pending, object)
	}
	delete(g.pending, owner)
	return true
}

// Forget opens the gate for an owner that is gone.
func (g *Gate) Forget(owner types.UID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.pending, owner)
}

// Store is what a gate asks of an informer's store; cache.Indexer is one.
type Store interface {
	GetByKey(key string) (item any, exists bool, err error)
	LastStoreSyncResourceVersion() string
}

// Written is seen when the store has the object at the version that the write returned, or a later state.
func Written(store Store, object metav1.Object) Seen {
	key, uid, version := keyOf(object), object.GetUID(), object.GetResourceVersion()
	return func() bool {
		cached := get(store, key)
		if cached == nil || cached.GetUID() != uid {
			// Deleted since, or not arrived yet: the version of the whole store decides.
			return AtLeast(store.LastStoreSyncResourceVersion(), version)
		}
		return AtLeast(cached.GetResourceVersion(), version)
	}
}

// Deleted is seen when the store no longer has the object, or has it as terminating.
func Deleted(store Store, object metav1.Object) Seen {
	key, uid := keyOf(object), object.GetUID()
	return func() bool {
		cached := get(store, key)
		return cached == nil || cached.GetUID() != uid || cached.GetDeletionTimestamp() != nil
	}
}

// AtLeast reports whether one resource version of a resource is another or a later one. A version that cannot be
// read is earlier than any.
func AtLeast(version, other string) bool {
	order, err := resourceversion.CompareResourceVersion(version, other)
	return err == nil && order >= 0
}

func get(store Store, key string) metav1.Object {
	item, exists, err := store.GetByKey(key)
	if err != nil || !exists {
		return nil
	}
	object, _ := item.(metav1.Object)
	return object
}

func keyOf(object metav1.Object) string {
	return cache.ObjectName{Namespace: object.GetNamespace(), Name: object.GetName()}.String()
}
