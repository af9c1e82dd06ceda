package bind

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/kit/election"
)

// Terms knows in which term of leadership each profile writes. Over a fenced connection (election.Fence) a write in the
// name of a profile that is not led is refused before it is sent. Its methods may be called from any goroutine.
type Terms struct {
	leading sync.Map // context of the term, by profile
}

// Lead says that the profile writes in the term that ctx comes from.
func (t *Terms) Lead(ctx context.Context, profile string) { t.leading.Store(profile, ctx) }

// Writing returns ctx as a context in which the Pod's profile may write.
func (t *Terms) Writing(ctx context.Context, pod *corev1.Pod) context.Context {
	leading, ok := t.leading.Load(pod.Spec.SchedulerName)
	if !ok {
		return ctx
	}
	return election.WithTermOf(ctx, leading.(context.Context))
}
