package bind

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/typed/scheduling/v1beta1"

	"keelson.dev/kit/conditions"
	"keelson.dev/kit/failpoint"
	"keelson.dev/kit/wakeup"
)

// GroupStatuses writes the conditions of PodGroups. It writes only the newest of several for one group, and none that
// the group has already.
type GroupStatuses struct {
	client v1beta1.PodGroupsGetter
	terms  *Terms
	failed func(types.NamespacedName, error)

	mu      sync.Mutex
	wanted  map[types.NamespacedName]GroupStatus
	changed wakeup.Signal
}

// GroupStatus is what a PodGroup should say. Pod is one of its Pods, in the name of whose profile it is written.
type GroupStatus struct {
	Group      *schedulingv1beta1.PodGroup
	Pod        *corev1.Pod
	Conditions []metav1.Condition
}

// NewGroupStatuses returns a writer that reports failures to failed, from any goroutine.
func NewGroupStatuses(client v1beta1.PodGroupsGetter, terms *Terms,
	failed func(types.NamespacedName, error)) *GroupStatuses {
	return &GroupStatuses{client: client, terms: terms, failed: failed,
		wanted: map[types.NamespacedName]GroupStatus{}, changed: wakeup.New()}
}

// Set asks for the conditions. The group is the newest that is known of it; what it says decides what there is to
// write, and since when the conditions hold.
func (s *GroupStatuses) Set(status GroupStatus, now time.Time) {
	list, news := status.Group.Status.Conditions, false
	for _, c := range status.Conditions {
		next, changed := conditions.Standard.Set(list, c, now)
		list, news = next, news || changed
	}
	status.Conditions = list
	name := types.NamespacedName{Namespace: status.Group.Namespace, Name: status.Group.Name}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !news {
		delete(s.wanted, name)
		return
	}
	s.wanted[name] = status
	s.changed.Send()
}

// Run writes until ctx ends.
func (s *GroupStatuses) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.changed:
		}
		s.mu.Lock()
		batch := s.wanted
		s.wanted = map[types.NamespacedName]GroupStatus{}
		s.mu.Unlock()
		for name, status := range batch {
			if err := s.patch(ctx, status); err != nil && ctx.Err() == nil && !apierrors.IsNotFound(err) {
				s.failed(name, err)
			}
		}
	}
}

// patch writes the conditions into the very version of the group that they were decided for.
func (s *GroupStatuses) patch(ctx context.Context, status GroupStatus) error {
	ctx, cancel := context.WithTimeout(s.terms.Writing(ctx, status.Pod), requestTimeout)
	defer cancel()
	g := status.Group
	body, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": g.UID, "resourceVersion": g.ResourceVersion},
		"status":   map[string]any{"conditions": status.Conditions},
	})
	if err != nil {
		return fmt.Errorf("encoding the conditions of a pod group: %w", err)
	}
	err = failpoint.Around("scheduler/podgroup.status", func() error {
		_, err := s.client.PodGroups(g.Namespace).Patch(ctx, g.Name, types.MergePatchType, body,
			metav1.PatchOptions{}, "status")
		return err
	})
	if err != nil {
		return fmt.Errorf("writing the conditions of a pod group: %w", err)
	}
	return nil
}
