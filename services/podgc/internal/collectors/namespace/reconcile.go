package namespace

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"keelson.dev/kit/failpoint"
	"keelson.dev/kit/pass"
	"keelson.dev/services/podgc/internal/resources"
)

// collector empties one namespace at a time.
type collector struct {
	live      client.Reader
	metadata  metadata.Interface
	clientset kubernetes.Interface
	server    resources.Lister
	log       *zap.Logger
	last      decisions
}

// steps are what a pass over a namespace consists of. It is read from the server: letting it go cannot be undone.
func (c *collector) steps() *pass.Steps[*corev1.Namespace, Input, Plan] {
	return &pass.Steps[*corev1.Namespace, Input, Plan]{
		Reader: c.live, New: func() *corev1.Namespace { return &corev1.Namespace{} },
		Observe: func(ctx context.Context, ns *corev1.Namespace) (Input, bool, error) {
			if !NeedsWork(ns) {
				return Input{}, false, nil
			}
			in, err := c.empty(ctx, ns)
			return in, true, err
		},
		Decide: c.last.decide,
		Apply: func(ctx context.Context, in Input, plan Plan) error {
			return client.IgnoreNotFound(c.apply(ctx, in.Namespace, plan))
		},
		After:   func(_ Input, plan Plan) time.Duration { return plan.LookAgain },
		Recheck: lookAgainFirst,
	}
}

// empty asks for the deletion of everything inside and reports what is left. While Pods are left nothing else is
// touched.
func (c *collector) empty(ctx context.Context, ns *corev1.Namespace) (Input, error) {
	set, err := resources.Discover(c.server)
	if err != nil {
		return Input{}, err
	}
	in := Input{Namespace: ns, Now: time.Now()}
	for _, version := range set.Failed {
		in.Undiscovered = append(in.Undiscovered, version.String())
	}
	pods, others := split(set.List)
	for _, stage := range [][]resources.Resource{pods, others} {
		for _, r := range stage {
			content, err := c.clear(ctx, r, ns.Name)
			if err != nil {
				in.Failures = append(in.Failures, fmt.Sprintf("%s: %v", r.GroupResource(), err))
			}
			if content.Count > 0 {
				in.Remaining = append(in.Remaining, content)
			}
		}
		if len(in.Remaining)+len(in.Failures) > 0 {
			return in, nil
		}
	}
	return in, nil
}

// split returns Pods and, apart from them, all other resources that live in namespaces and can be deleted.
func split(list []resources.Resource) (pods, others []resources.Resource) {
	for _, r := range list {
		switch {
		case !r.Namespaced || !r.Can("delete", "list"):
		case r.Group == "" && r.Resource == "pods":
			pods = append(pods, r)
		default:
			others = append(others, r)
		}
	}
	return pods, others
}

// clear asks for the graceful deletion of all objects of one resource and returns what is left of it. It never
// forces a deletion (SAF-155).
func (c *collector) clear(ctx context.Context, r resources.Resource, namespace string) (Content, error) {
	objects := c.metadata.Resource(r.GroupVersionResource).Namespace(namespace)
	list, err := objects.List(ctx, metav1.ListOptions{})
	if err != nil {
		return Content{}, ignoreNotServed(err)
	}
	if len(list.Items) == 0 {
		return Content{}, nil
	}
	if err := failpoint.Inject("podgc/namespace.content.delete.before"); err != nil {
		return Content{}, err
	}
	if err := c.deleteAll(ctx, r, objects, list.Items); err != nil {
		return contentOf(r, list.Items), ignoreNotServed(err)
	}
	list, err = objects.List(ctx, metav1.ListOptions{})
	if err != nil {
		return Content{}, ignoreNotServed(err)
	}
	return contentOf(r, list.Items), nil
}

func (c *collector) deleteAll(ctx context.Context, r resources.Resource, objects metadata.ResourceInterface,
	items []metav1.PartialObjectMetadata) error {
	background := metav1.DeletePropagationBackground
	options := metav1.DeleteOptions{PropagationPolicy: &background}
	if r.Can("deletecollection") {
		return objects.DeleteCollection(ctx, options, metav1.ListOptions{})
	}
	var errs []error
	for i := range items {
		if err := objects.Delete(ctx, items[i].Name, options); client.IgnoreNotFound(err) != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// ignoreNotServed lets resources pass that refuse to be listed or have just gone with their definition.
func ignoreNotServed(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
		return nil
	}
	return err
}

func contentOf(r resources.Resource, items []metav1.PartialObjectMetadata) Content {
	content := Content{Resource: r.GroupResource().String(), Count: len(items), Finalizers: map[string]int{}}
	for i := range items {
		for _, finalizer := range items[i].Finalizers {
			content.Finalizers[finalizer]++
		}
	}
	return content
}

func (c *collector) apply(ctx context.Context, ns *corev1.Namespace, plan Plan) error {
	changed := ns.DeepCopy()
	switch {
	case plan.Finalize:
		if err := failpoint.Inject("podgc/namespace.finalize.before"); err != nil {
			return err
		}
		changed.Spec.Finalizers = nil
		for _, finalizer := range ns.Spec.Finalizers {
			if finalizer != corev1.FinalizerKubernetes {
				changed.Spec.Finalizers = append(changed.Spec.Finalizers, finalizer)
			}
		}
		c.log.Info("namespace is empty", zap.String("name", ns.Name))
		if _, err := c.clientset.CoreV1().Namespaces().Finalize(ctx, changed,
			metav1.UpdateOptions{FieldManager: Name}); err != nil {
			return fmt.Errorf("finalizing namespace %s: %w", ns.Name, err)
		}
	case plan.Conditions != nil:
		changed.Status.Conditions = plan.Conditions
		if _, err := c.clientset.CoreV1().Namespaces().UpdateStatus(ctx, changed,
			metav1.UpdateOptions{FieldManager: Name}); err != nil {
			return fmt.Errorf("writing the conditions of namespace %s: %w", ns.Name, err)
		}
	}
	return nil
}
