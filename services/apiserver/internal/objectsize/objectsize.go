// Package objectsize remembers which objects are not small, and how large lists are, so that the server can tell what a
// request will cost before it is begun.
package objectsize

import (
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/request"
)

const (
	// Large is from how many bytes on something takes long to be worked on.
	Large = 64 << 10
	// noted is from how many bytes on an object is remembered.
	noted = 16 << 10
	// remembered bounds how much is, of objects and of lists each. One of several is forgotten for the next.
	remembered = 64 << 10
	// fresh is for how long the length of a list is believed.
	fresh = 10 * time.Minute
)

// Object names an object as it is stored.
type Object struct {
	Resource        schema.GroupResource
	Namespace, Name string
}

// About is the object of a request about one that has a name.
func About(info *request.RequestInfo) Object {
	of := Object{Resource: schema.GroupResource{Group: info.APIGroup, Resource: info.Resource},
		Namespace: info.Namespace, Name: info.Name}
	if of.Resource == (schema.GroupResource{Resource: "namespaces"}) { // the library says that each is in itself
		of.Namespace = ""
	}
	return of
}

// List names the objects of a resource in a namespace, or in all; or the path of what is no object.
type List struct {
	Resource        schema.GroupResource
	Namespace, Path string
}

// Book is what is remembered. The zero value is an empty one.
type Book struct {
	mu      sync.RWMutex // guards what follows
	objects map[Object]int64
	lists   map[List]answer
	// any says that there are objects, without the lock.
	any atomic.Bool
}

// answer is the longest of late.
type answer struct {
	bytes int64
	at    time.Time
}

// Note says how many bytes an object has in the store. Small ones, which most are, cost nothing unless others are
// not.
func (b *Book) Note(o func() Object, bytes int64) {
	if bytes < noted && !b.any.Load() {
		return
	}
	of := o()
	b.mu.Lock()
	defer b.mu.Unlock()
	if bytes < noted {
		delete(b.objects, of)
		return
	}
	if b.objects == nil {
		b.objects = map[Object]int64{}
	}
	b.objects[of] = bytes
	b.any.Store(true)
	forgetOne(b.objects)
}

// Answered says how many bytes the answer to a list had.
func (b *Book) Answered(l List, bytes int64, now time.Time) {
	if bytes < Large {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.lists == nil {
		b.lists = map[List]answer{}
	}
	if last := b.lists[l]; bytes >= last.bytes || now.Sub(last.at) > fresh {
		b.lists[l] = answer{bytes, now}
		forgetOne(b.lists)
	}
}

// OfObject is how many bytes an object has; zero if it is not large.
func (b *Book) OfObject(o Object) int64 {
	if !b.any.Load() {
		return 0
	}
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.objects[o]
}

// OfList is how long a list has been of late; zero if it is not known to be long.
func (b *Book) OfList(l List, now time.Time) int64 {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if last := b.lists[l]; now.Sub(last.at) <= fresh {
		return last.bytes
	}
	return 0
}

// forgetOne keeps a map from growing beyond what is remembered.
func forgetOne[K comparable, V any](m map[K]V) {
	for of := range m {
		if len(m) <= remembered {
			return
		}
		delete(m, of)
	}
}
