package protection

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"keelson.dev/kit/failpoint"
	"keelson.dev/kit/pass"
)

// page is how many claims or volumes are read at a time.
const page = 500

// object is what the cache has of a claim, a volume, a class or a PodGroup.
type object = *metav1.PartialObjectMetadata

// collector protects the objects of one kind.
type collector struct {
	cached client.Reader
	live   client.Reader
	writer client.Writer
	kind
}

// steps are what a pass over an object consists of.
func (c *collector) steps() *pass.Steps[object, Input, Plan] {
	return &pass.Steps[object, Input, Plan]{
		Reader: c.cached, New: c.blank, Observe: c.observe, Decide: Decide, Apply: c.apply,
	}
}

// observe looks whether an object that goes is used: in the cache, and past it before it is let go.
func (c *collector) observe(ctx context.Context, o object) (Input, bool, error) {
	in := Input{Object: o, Finalizer: c.finalizer}
	if !NeedsWork(o, c.finalizer) {
		return in, false, nil
	}
	if isGoing(o) {
		var err error
		if in.User, err = c.user(ctx, c, o); err != nil {
			return in, false, fmt.Errorf("looking who uses %s %s: %w", c.name, o.Name, err)
		}
	}
	return in, true, nil
}

// apply changes the finalizers of the very version that was decided on.
func (c *collector) apply(ctx context.Context, in Input, plan Plan) error {
	if !plan.Change {
		return nil
	}
	before := in.Object.(object)
	next := before.DeepCopy()
	next.Finalizers = plan.Finalizers
	return failpoint.Around("podgc/"+c.name+".finalizer", func() error {
		err := c.writer.Patch(ctx, next, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("changing the finalizers of %s %s: %w", c.name, before.Name, err)
		}
		return nil
	})
}

// podUser returns a Pod that uses the object. What the cache does not know yet the apiserver does.
func podUser(field string, uses func(*corev1.Pod, metav1.Object) bool) func(context.Context, *collector, object) (
	string, error) {
	return func(ctx context.Context, c *collector, o object) (string, error) {
		for _, look := range []struct {
			reader  client.Reader
			options []client.ListOption
		}{
			{c.cached, []client.ListOption{client.InNamespace(o.Namespace), client.MatchingFields{field: o.Name}}},
			{c.live, []client.ListOption{client.InNamespace(o.Namespace)}},
		} {
			var pods corev1.PodList
			if err := look.reader.List(ctx, &pods, look.options...); err != nil {
				return "", err
			}
			for i := range pods.Items {
				if uses(&pods.Items[i], o) {
					return "Pod " + pods.Items[i].Name, nil
				}
			}
		}
		return "", nil
	}
}

// volumeUser returns the claim that has the volume, by the word of the apiserver alone.
func volumeUser(ctx context.Context, c *collector, o object) (string, error) {
	volume := &corev1.PersistentVolume{}
	if err := c.live.Get(ctx, client.ObjectKeyFromObject(o), volume); err != nil {
		return "", client.IgnoreNotFound(err)
	}
	ref := volume.Spec.ClaimRef
	if volume.UID != o.UID || ref == nil {
		if usesVolume(volume, nil, "") {
			return "whoever bound it", nil
		}
		return "", nil
	}
	claim := &corev1.PersistentVolumeClaim{}
	err := c.live.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, claim)
	if client.IgnoreNotFound(err) != nil {
		return "", err
	} else if err != nil {
		claim = nil
	}
	if !usesVolume(volume, claim, ref.UID) {
		return "", nil
	}
	return "PersistentVolumeClaim " + ref.Namespace + "/" + ref.Name, nil
}

// classUser returns a claim or a volume that has the class, by the word of the apiserver alone. It looks at claims
// first: what a claim lets go of its volume may still have.
func classUser(ctx context.Context, c *collector, o object) (string, error) {
	user, err := inPages(ctx, c.live, func(claims *corev1.PersistentVolumeClaimList) string {
		for i := range claims.Items {
			if claim := &claims.Items[i]; usesClass(claim, o.Name) {
				return "PersistentVolumeClaim " + claim.Namespace + "/" + claim.Name
			}
		}
		return ""
	})
	if user != "" || err != nil {
		return user, err
	}
	return inPages(ctx, c.live, func(volumes *corev1.PersistentVolumeList) string {
		for i := range volumes.Items {
			if volume := &volumes.Items[i]; hasClass(volume, o.Name) {
				return "PersistentVolume " + volume.Name
			}
		}
		return ""
	})
}

// inPages calls find with all objects of a kind, a page at a time, until it returns one.
func inPages[L any, List interface {
	*L
	client.ObjectList
}](ctx context.Context, live client.Reader, find func(List) string) (string, error) {
	for next := ""; ; {
		list := List(new(L))
		if err := live.List(ctx, list, client.Limit(page), client.Continue(next)); err != nil {
			return "", err
		}
		found := find(list)
		if next = list.GetContinue(); found != "" || next == "" {
			return found, nil
		}
	}
}
