package bind

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/typed/core/v1"

	"keelson.dev/kit/conditions"
	"keelson.dev/kit/failpoint"
)

// statusWriters is how many statuses are written at a time. Pods that find no node are in no hurry.
const statusWriters = 4

// Statuses writes the condition PodScheduled of Pods that found no node, and for which node they are nominated. Of
// several for one Pod only the newest is written, and none that the Pod has already.
type Statuses struct {
	client v1.PodsGetter
	terms  *Terms
	failed func(*corev1.Pod, error)

	mu      sync.Mutex
	wanted  map[types.UID]status
	order   []types.UID // of wanted; may name Pods that are no longer
	changed chan struct{}
}

type status struct {
	pod       *corev1.Pod
	condition corev1.PodCondition
	nominated string
}

// NewStatuses returns a writer that reports failures to failed, from any goroutine.
func NewStatuses(client v1.PodsGetter, terms *Terms, failed func(*corev1.Pod, error)) *Statuses {
	return &Statuses{
		client: client, terms: terms, failed: failed,
		wanted:  map[types.UID]status{},
		changed: make(chan struct{}, 1),
	}
}

// Set asks for the condition and the nomination, which may be for no node. The Pod is the newest that is known of it;
// what it says decides whether there is anything to write, and since when the condition holds.
func (s *Statuses) Set(pod *corev1.Pod, condition corev1.PodCondition, nominated string, now time.Time) {
	condition, news := conditions.Pod.Follow(pod.Status.Conditions, condition, now)
	if !news && pod.Status.NominatedNodeName == nominated {
		s.Drop(pod.UID)
		return
	}
	s.mu.Lock()
	if _, ok := s.wanted[pod.UID]; !ok {
		s.order = append(s.order, pod.UID)
	}
	s.wanted[pod.UID] = status{pod: pod, condition: condition, nominated: nominated}
	s.mu.Unlock()
	s.signal()
}

// Drop forgets a condition that has not been written: the Pod has got a node, or is gone.
func (s *Statuses) Drop(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.wanted, uid)
}

// Run writes until ctx ends.
func (s *Statuses) Run(ctx context.Context) {
	var wg sync.WaitGroup
	for range statusWriters {
		wg.Go(func() {
			for {
				if next, ok := s.next(); ok {
					s.write(ctx, next)
					continue
				}
				select {
				case <-ctx.Done():
					return
				case <-s.changed:
				}
			}
		})
	}
	wg.Wait()
}

func (s *Statuses) next() (status, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.order) > 0 {
		uid := s.order[0]
		s.order = s.order[1:]
		if next, ok := s.wanted[uid]; ok {
			delete(s.wanted, uid)
			if len(s.order) > 0 {
				s.signal() // another writer may go on
			}
			return next, true
		}
	}
	return status{}, false
}

func (s *Statuses) signal() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// write patches the condition into the very version of the Pod that it was decided for: a Pod that was bound or changed
// meanwhile keeps what it has. If it still needs a node, the newer version is decided on and written again.
func (s *Statuses) write(ctx context.Context, next status) {
	err := s.patch(ctx, next)
	if err != nil && ctx.Err() == nil && !apierrors.IsNotFound(err) {
		s.failed(next.pod, err)
	}
}

// Write writes the condition and the nomination at once, unless the Pod says both already.
func (s *Statuses) Write(ctx context.Context, pod *corev1.Pod, condition corev1.PodCondition, nominated string) error {
	condition, news := conditions.Pod.Follow(pod.Status.Conditions, condition, time.Now())
	if !news && pod.Status.NominatedNodeName == nominated {
		return nil
	}
	return s.patch(ctx, status{pod: pod, condition: condition, nominated: nominated})
}

func (s *Statuses) patch(ctx context.Context, next status) error {
	ctx, cancel := context.WithTimeout(s.terms.Writing(ctx, next.pod), requestTimeout)
	defer cancel()
	said := map[string]any{"conditions": []corev1.PodCondition{next.condition}}
	switch next.nominated {
	case next.pod.Status.NominatedNodeName:
	case "":
		said["nominatedNodeName"] = nil
	default:
		said["nominatedNodeName"] = next.nominated
	}
	body, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": next.pod.UID, "resourceVersion": next.pod.ResourceVersion},
		"status":   said,
	})
	if err != nil {
		return fmt.Errorf("encoding the condition PodScheduled: %w", err)
	}
	err = failpoint.Around("scheduler/status", func() error {
		_, err := s.client.Pods(next.pod.Namespace).Patch(ctx, next.pod.Name, types.StrategicMergePatchType, body,
			metav1.PatchOptions{}, "status")
		return err
	})
	if err != nil {
		return fmt.Errorf("writing the condition PodScheduled: %w", err)
	}
	return nil
}
