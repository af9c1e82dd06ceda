// Package priority is the admission plugin Priority: it turns the priority class that a Pod or a PodGroup names into a
// number, and keeps the classes from having two defaults.
package priority

import (
	"context"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/informers"
	schedulinglisters "k8s.io/client-go/listers/scheduling/v1"

	"keelson.dev/services/apiserver/internal/admission/lookup"
	"keelson.dev/services/apiserver/internal/admission/podrequest"
)

// PluginName is the name by which Kubernetes knows the plugin.
const PluginName = "Priority"

// Plugin resolves priorities from the classes in memory.
type Plugin struct {
	*lookup.Handler[schedulinglisters.PriorityClassLister]
}

var (
	_ admission.MutationInterface   = &Plugin{}
	_ admission.ValidationInterface = &Plugin{}
)

// Register makes the plugin known to the chain.
func Register(plugins *admission.Plugins) {
	plugins.Register(PluginName, func(io.Reader) (admission.Interface, error) {
		return &Plugin{lookup.NewHandler(classes, admission.Create, admission.Update)}, nil
	})
}

func classes(factory informers.SharedInformerFactory) lookup.Informer[schedulinglisters.PriorityClassLister] {
	return factory.Scheduling().V1().PriorityClasses()
}

// Admit sets the priority of a Pod or of a PodGroup.
func (p *Plugin) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	pod, err := podrequest.Pod(a)
	if err != nil {
		return err
	}
	group, _ := a.GetObject().(*schedulingv1beta1.PodGroup)
	switch update := a.GetOperation() == admission.Update; {
	case pod != nil && update:
		if old, ok := a.GetOldObject().(*corev1.Pod); ok {
			keep(pod, old)
		}
	case pod != nil:
		return p.resolve(ctx, a, pod.Spec.PriorityClassName, func(r resolved) error { return apply(pod, r) })
	case group == nil || a.GetSubresource() != "":
	case update:
		if old, ok := a.GetOldObject().(*schedulingv1beta1.PodGroup); ok {
			keepOfGroup(group, old)
		}
	default:
		return p.resolve(ctx, a, group.Spec.PriorityClassName,
			func(r resolved) error { return applyToGroup(group, r) })
	}
	return nil
}

// resolve looks a class up and lets apply write what follows from it.
func (p *Plugin) resolve(ctx context.Context, a admission.Attributes, name string, apply func(resolved) error) error {
	if !p.WaitForReady() {
		return admission.NewForbidden(a, fmt.Errorf("not yet ready to handle request"))
	}
	class, err := p.class(ctx, name)
	if err == nil {
		err = apply(resolve(class))
	}
	if err != nil {
		return admission.NewForbidden(a, err)
	}
	return nil
}

// Validate checks the default of a priority class against the store itself: two requests in a row must see each other.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	class, ok := a.GetObject().(*schedulingv1.PriorityClass)
	if !ok || !class.GlobalDefault || a.GetResource().GroupResource() != schedulingv1.Resource("priorityclasses") {
		return nil
	}
	list, err := p.Client.SchedulingV1().PriorityClasses().List(ctx, metav1.ListOptions{})
	if err != nil {
		return apierrors.NewInternalError(fmt.Errorf("listing the priority classes: %w", err))
	}
	all := make([]*schedulingv1.PriorityClass, 0, len(list.Items))
	for i := range list.Items {
		all = append(all, &list.Items[i])
	}
	if err := checkDefault(class, all); err != nil {
		return admission.NewForbidden(a, err)
	}
	return nil
}

// class finds the class called name, or the default class if it is empty.
func (p *Plugin) class(ctx context.Context, name string) (*schedulingv1.PriorityClass, error) {
	if name == "" {
		all, err := p.Objects.List(labels.Everything())
		if err != nil {
			return nil, fmt.Errorf("listing the priority classes: %w", err)
		}
		return pickDefault(all), nil
	}
	class, err := lookup.Get(ctx, name, p.Objects, p.Client.SchedulingV1().PriorityClasses())
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("no PriorityClass with name %s was found", name)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the PriorityClass %s: %w", name, err)
	}
	return class, nil
}
