package staticpods

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/util/workqueue"

	"keelson.dev/kit/events"
	"keelson.dev/kit/failpoint"
	"keelson.dev/kit/podview"
)

// The delays after the first and after many failures to write a mirror, and the time limit of a call.
const (
	againAtFirst = time.Second
	againAtLast  = 30 * time.Second
	callTimeout  = 10 * time.Second
)

func newQueue() workqueue.TypedRateLimitingInterface[types.NamespacedName] {
	return workqueue.NewTypedRateLimitingQueue(
		workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](againAtFirst, againAtLast))
}

// Mirror keeps the mirrors up to date until ctx ends. Call it when all mirrors of the API are known.
func (s *Source) Mirror(ctx context.Context) {
	stop := context.AfterFunc(ctx, s.queue.ShutDown)
	defer stop()
	for {
		name, ended := s.queue.Get()
		if ended {
			return
		}
		if err := s.mirror(ctx, name); err == nil {
			s.queue.Forget(name)
		} else if ctx.Err() == nil {
			s.Log.Warn("a mirror Pod is not as it shall be, trying again", zap.Stringer("pod", name), zap.Error(err))
			s.Record(events.Warning(reasonMirror, "Mirror Pod %s: %s", name, oneLine(err.Error())))
			s.queue.AddRateLimited(name)
		}
		s.queue.Done(name)
	}
}

// mirror brings the mirror of a name one step closer to its desired state.
func (s *Source) mirror(ctx context.Context, name types.NamespacedName) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	s.mu.Lock()
	in := showing{Mirror: s.mirrors[name], Owner: s.Owner()}
	if i := s.namedLocked(name); i != nil {
		in.Static = i.Pod
	}
	s.mu.Unlock()
	plan := decideMirror(in)
	switch {
	case plan.Delete != nil:
		return s.Statuses.Delete(ctx, plan.Delete)
	case plan.Create != nil:
		return s.create(ctx, plan.Create)
	}
	return nil
}

func (s *Source) create(ctx context.Context, mirror *corev1.Pod) error {
	return failpoint.Around("nodeagent/mirror.create", func() error {
		created, err := s.Client.Pods(mirror.Namespace).Create(ctx, mirror, metav1.CreateOptions{})
		switch {
		case apierrors.IsAlreadyExists(err):
			return fmt.Errorf("another Pod of the API has the name: %w", err)
		case err != nil:
			return fmt.Errorf("creating it: %w", err)
		}
		s.SetMirror(created)
		return nil
	})
}

// SetMirror takes in a version of a mirror in the API.
func (s *Source) SetMirror(mirror *corev1.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := nameOf(mirror)
	if old := s.mirrors[name]; old != nil && old.UID == mirror.UID && older(mirror, old) {
		return
	}
	s.mirrors[name] = mirror
	s.queue.Add(name)
	if i := s.namedLocked(name); i != nil {
		s.showLocked(i, false)
	}
}

// SeeMirror takes in a version of a mirror from the answer to a write: the mirror may be gone since.
func (s *Source) SeeMirror(mirror *corev1.Pod) {
	s.mu.Lock()
	old := s.mirrors[nameOf(mirror)]
	s.mu.Unlock()
	if old != nil && old.UID == mirror.UID {
		s.SetMirror(mirror)
	}
}

// RemoveMirror notes that the API has no mirror of the UID any more.
func (s *Source) RemoveMirror(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, mirror := range s.mirrors {
		if mirror.UID == uid {
			delete(s.mirrors, name)
			s.Statuses.Forget(uid)
			s.queue.Add(name)
		}
	}
}

// Publish takes in the status of a static Pod, for its mirror.
func (s *Source) Publish(pod *corev1.Pod, status corev1.PodStatus, brief bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.instances[pod.UID]
	if i == nil {
		return
	}
	s.setStatusLocked(i, status)
	s.showLocked(i, brief)
}

// showLocked writes the status of a static Pod to its mirror, if the mirror is current.
func (s *Source) showLocked(i *instance, brief bool) {
	mirror := s.mirrors[nameOf(i.Pod)]
	if mirror == nil || i.Pod.Status.Phase == "" || !shows(mirror, i.Pod, s.Owner()) {
		return
	}
	if podview.IsTerminal(mirror) && !podview.IsTerminal(i.Pod) {
		s.queue.Add(nameOf(i.Pod))
		return
	}
	s.Statuses.Publish(mirror, mirrorStatus(&i.Pod.Status, mirror), brief)
}

func (s *Source) namedLocked(name types.NamespacedName) *instance {
	for _, i := range s.instances {
		if nameOf(i.Pod) == name {
			return i
		}
	}
	return nil
}

// pathOf returns the path of a file; without a name, that of the folder.
func (s *Source) pathOf(file string) string {
	if filepath.Base(s.Path) == file {
		return s.Path
	}
	return filepath.Join(s.Path, file)
}

// older reports whether a version of an object comes before another one.
func older(one, other *corev1.Pod) bool {
	order, err := resourceversion.CompareResourceVersion(one.ResourceVersion, other.ResourceVersion)
	return err == nil && order < 0
}
