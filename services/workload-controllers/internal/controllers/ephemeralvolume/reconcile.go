package ephemeralvolume

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"keelson.dev/kit/events"
	"keelson.dev/kit/pass"
	"keelson.dev/services/workload-controllers/internal/write"
)

// recorder emits events; events.Recorder implements it.
type recorder interface {
	Record(object runtime.Object, e events.Event)
}

// Controller creates the claims of ephemeral volumes. It needs no gate: a claim that exists cannot be created twice.
type Controller struct {
	client   client.Client // reads from the cache
	writer   *write.Writer
	recorder recorder
	users    *users
}

// steps are what a pass over a Pod consists of.
func (c *Controller) steps() *pass.Steps[*corev1.Pod, Input, Plan] {
	return &pass.Steps[*corev1.Pod, Input, Plan]{
		Reader: c.client, New: func() *corev1.Pod { return &corev1.Pod{} },
		Observe: c.observe, Decide: Decide, Apply: c.apply,
	}
}

// observe reads the claims that the Pod needs. All of it is shared with the cache.
func (c *Controller) observe(ctx context.Context, pod *corev1.Pod) (Input, bool, error) {
	in := Input{Pod: pod, Claims: map[string]*corev1.PersistentVolumeClaim{}}
	if !needsClaims(pod) {
		return in, false, nil
	}
	for _, name := range claimNames(pod) {
		claim := &corev1.PersistentVolumeClaim{}
		switch err := c.client.Get(ctx, client.ObjectKey{Namespace: pod.Namespace, Name: name}, claim); {
		case err == nil:
			in.Claims[name] = claim
		case !apierrors.IsNotFound(err):
			return in, false, fmt.Errorf("reading PersistentVolumeClaim %s: %w", name, err)
		}
	}
	return in, true, nil
}

// apply carries out the plan. The next pass looks at a claim that exists already.
func (c *Controller) apply(ctx context.Context, in Input, plan Plan) error {
	for _, e := range plan.Events {
		c.recorder.Record(in.Pod, e)
	}
	for _, made := range plan.Create {
		err := c.writer.Create(ctx, in.Pod.UID, made.Claim)
		switch {
		case err == nil:
		case apierrors.IsAlreadyExists(err):
			return pass.ErrStale
		case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
			return nil
		default:
			c.recorder.Record(in.Pod, refused(made, err))
			return fmt.Errorf("creating PersistentVolumeClaim %s: %w", made.Claim.Name, err)
		}
	}
	return nil
}
