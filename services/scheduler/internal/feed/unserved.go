package feed

import (
	"context"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
)

// unservedPause is how long a kind that was not served is not asked for again.
const unservedPause = 30 * time.Second

// whereServed is a source of objects of a kind that an apiserver may be configured not to serve (--runtime-config), or
// is too old to know: there are none of it then, and from time to time it is asked for again. A kind that was once
// served is not forgotten because an apiserver does not serve it any more: its objects stay in the store, and hold.
type whereServed struct {
	source          *cache.ListWatch
	served, missing atomic.Bool
}

// optional makes a kind that is not served one without objects.
func optional(source *cache.ListWatch) *cache.ListWatch {
	s := &whereServed{source: source}
	return &cache.ListWatch{ListWithContextFunc: s.list, WatchFuncWithContext: s.watch}
}

// list lists. The list of all objects of a kind is not found where the kind is not served, and never else.
func (s *whereServed) list(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	list, err := s.source.ListWithContext(ctx, o)
	if apierrors.IsNotFound(err) && !s.served.Load() {
		s.missing.Store(true)
		return &metav1.List{}, nil
	}
	s.note(err)
	return list, err
}

// watch watches. A watch that is to bring the existing objects asks again whether the kind is served; one that goes on
// from the empty list of a kind that is not served lasts until it is time to ask.
func (s *whereServed) watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	if s.missing.Load() && !ptr.Deref(o.SendInitialEvents, false) {
		return askAgain(), nil
	}
	w, err := s.source.WatchWithContext(ctx, o)
	s.note(err)
	return w, err
}

// note remembers that the kind is served when a request for it went well.
func (s *whereServed) note(err error) {
	if err == nil {
		s.served.Store(true)
		s.missing.Store(false)
	}
}

// askAgain is a watch that expires, so that its reader lists again.
func askAgain() watch.Interface {
	expired := apierrors.NewResourceExpired("the kind is not served").ErrStatus
	events := make(chan watch.Event, 1)
	time.AfterFunc(unservedPause, func() { events <- watch.Event{Type: watch.Error, Object: &expired} })
	return watch.NewProxyWatcher(events)
}
