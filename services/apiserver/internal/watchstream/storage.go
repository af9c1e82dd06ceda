// Package watchstream stands between the watch cache and the clients of watches: a queue lets a client fall behind by a
// burst of changes without its watch being ended, and what a client gets of a stream of changes is sent together.
package watchstream

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
)

// Storage gives every watch of more than one object a queue.
type Storage struct {
	storage.Interface
	resource schema.GroupResource
}

// New is the storage of a resource on top of its watch cache.
func New(cache storage.Interface, resource schema.GroupResource) Storage {
	register()
	return Storage{Interface: cache, resource: resource}
}

// Watch implements storage.Interface.
func (s Storage) Watch(ctx context.Context, key string, opts storage.ListOptions) (watch.Interface, error) {
	if !opts.Recursive {
		return s.Interface.Watch(ctx, key, opts)
	}
	r := &resumable{resource: s.resource, open: func(version string) (watch.Interface, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if version != "" {
			opts.ResourceVersion, opts.ResourceVersionMatch, opts.SendInitialEvents = version, "", nil
		}
		return s.Interface.Watch(ctx, key, opts)
	}}
	if opts.SendInitialEvents == nil && opts.ResourceVersion != "0" {
		r.version = opts.ResourceVersion
	}
	var err error
	if r.source, err = r.open(""); err != nil {
		return nil, err
	}
	return newQueue(r), nil
}

// resumable is a watch of the cache that can take the place of one which the cache has ended: the cache does that to
// each watcher that leaves a handful of events in its buffers for a moment, as it happens on a busy machine.
type resumable struct {
	resource schema.GroupResource
	open     func(version string) (watch.Interface, error)
	source   watch.Interface
	// version is up to where the reader has seen everything; "" while it is being told what there is.
	version string
	// progress is whether there was an event since the last resumption. Without, the next would do no better.
	progress bool
}

// note remembers what the reader has seen with an event.
func (r *resumable) note(event watch.Event) {
	object, err := meta.Accessor(event.Object)
	switch {
	case err != nil:
		// An error ends the watch: there is nothing to go on from.
		r.version = ""
	case r.version != "" || event.Type == watch.Bookmark || shared(event):
		// What there is comes in no order, and as objects that the cache does not share.
		r.version, r.progress = object.GetResourceVersion(), true
	}
}

// resume goes on behind the last event.
func (r *resumable) resume() bool {
	if r.version == "" || !r.progress {
		return false
	}
	r.progress = false
	source, err := r.open(r.version)
	if err != nil {
		return false
	}
	r.source = source
	resumed.WithLabelValues(r.resource.Group, r.resource.Resource).Inc()
	return true
}

// shared is whether all watchers get the same object, encoded once.
func shared(event watch.Event) bool {
	_, ok := event.Object.(runtime.CacheableObject)
	return ok
}
