package objectcache

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/localvolume"
)

// How long to wait after a failed read or watch; each failure doubles it.
const (
	firstPause = 200 * time.Millisecond
	lastPause  = 30 * time.Second
)

// entry follows one object, or one list of objects. It reads it, then watches it from that version on, and reads it
// again whenever the watch cannot go on.
type entry struct {
	key     key
	from    resource
	cancel  context.CancelFunc
	changed func(types.UID)
	read    chan struct{} // closed after the first answer

	mu     sync.Mutex // guards the fields below
	pods   map[types.UID]bool
	object runtime.Object
	err    error
}

func (e *entry) addPod(pod types.UID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.pods[pod] = true
}

func (e *entry) removePod(pod types.UID) (left int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.pods, pod)
	return len(e.pods)
}

func (e *entry) current() (runtime.Object, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.object, e.err
}

// run follows the object until ctx ends, or until it is immutable.
func (e *entry) run(ctx context.Context) {
	pause := firstPause
	for ctx.Err() == nil {
		object, err := e.from.get(ctx)
		if err != nil && !apierrors.IsNotFound(err) {
			e.fail(ctx, err)
			sleep(ctx, pause)
			pause = min(2*pause, lastPause)
			continue
		}
		e.store(object)
		if immutable(object) {
			return
		}
		started := time.Now()
		e.watch(ctx, resourceVersion(object))
		if time.Since(started) > lastPause {
			pause = firstPause
		}
		sleep(ctx, pause) // not a tight loop if a server ends watches at once
		pause = min(2*pause, lastPause)
	}
}

// watch stores the changes and returns when the watch has ended. It starts after the given version; without one,
// with the present state.
func (e *entry) watch(ctx context.Context, version string) {
	events, err := e.from.watch(ctx, metav1.ListOptions{
		FieldSelector:       e.from.selector.String(),
		ResourceVersion:     version,
		AllowWatchBookmarks: true,
		TimeoutSeconds:      ptr.To(int64(300 + rand.IntN(300))),
	})
	if err != nil {
		return
	}
	defer events.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case event, ok := <-events.ResultChan():
			if !ok || !e.apply(event) {
				return
			}
		}
	}
}

// apply stores the result of an event, and reports whether the watch can go on.
func (e *entry) apply(event watch.Event) bool {
	switch event.Type {
	case watch.Added, watch.Modified, watch.Deleted:
		held, _ := e.current()
		e.store(e.from.after(held, event))
	case watch.Error:
		return false
	}
	return true
}

// store keeps the object (nil: it does not exist) and notifies the Pods if it has changed.
func (e *entry) store(object runtime.Object) {
	e.mu.Lock()
	first := e.object == nil && e.err == nil
	same := identity(e.object) == identity(object) && (object != nil || apierrors.IsNotFound(e.err))
	e.object, e.err = object, nil
	if object == nil {
		e.err = notFound(e.key)
	}
	var pods []types.UID
	for pod := range e.pods {
		pods = append(pods, pod)
	}
	e.mu.Unlock()
	if first {
		close(e.read)
		return
	}
	if same {
		return
	}
	for _, pod := range pods {
		e.changed(pod)
	}
}

// fail stores an error while the object has never been read; later the last known object stays.
func (e *entry) fail(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.object != nil || apierrors.IsNotFound(e.err) {
		return
	}
	if e.err == nil {
		close(e.read)
	}
	e.err = err
}

// identity is equal for two states of an object, or of a list, that are equal to a reader. It does not include a
// list's version, which is different at each read.
func identity(object runtime.Object) string {
	if object == nil {
		return ""
	}
	if accessor, err := meta.Accessor(object); err == nil {
		return string(accessor.GetUID()) + "/" + accessor.GetResourceVersion()
	}
	var items []string
	_ = meta.EachListItem(object, func(item runtime.Object) error {
		items = append(items, identity(item))
		return nil
	})
	slices.Sort(items)
	return "list " + strings.Join(items, " ")
}

func resourceVersion(object runtime.Object) string {
	if object == nil {
		return ""
	}
	accessor, err := meta.CommonAccessor(object)
	if err != nil {
		return ""
	}
	return accessor.GetResourceVersion()
}

// immutable reports whether the object will not change any more: a volume once it is bound, unless its driver may let
// it grow.
func immutable(object runtime.Object) bool {
	switch object := object.(type) {
	case *corev1.ConfigMap:
		return ptr.Deref(object.Immutable, false)
	case *corev1.Secret:
		return ptr.Deref(object.Immutable, false)
	case *corev1.PersistentVolume:
		grows := object.Spec.CSI != nil && object.Spec.CSI.Driver != localvolume.Driver
		return object.Status.Phase == corev1.VolumeBound && !grows
	}
	return false
}

// sleep waits d and a random part more, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d + rand.N(d/2)):
	case <-ctx.Done():
	}
}
