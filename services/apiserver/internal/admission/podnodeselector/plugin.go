// Package podnodeselector is the admission plugin PodNodeSelector: the Pods of a namespace go to the nodes that the
// namespace or the operator says. It is off unless an operator asks for it.
package podnodeselector

import (
	"context"
	"errors"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/informers"
	corelisters "k8s.io/client-go/listers/core/v1"

	"keelson.dev/services/apiserver/internal/admission/lookup"
	"keelson.dev/services/apiserver/internal/admission/pluginconfig"
	"keelson.dev/services/apiserver/internal/admission/podrequest"
)

// PluginName is the name by which Kubernetes knows the plugin.
const PluginName = "PodNodeSelector"

// Plugin completes and checks the node selectors of new Pods.
type Plugin struct {
	*lookup.Handler[corelisters.NamespaceLister]
	selectors map[string]labels.Set
}

var (
	_ admission.MutationInterface   = &Plugin{}
	_ admission.ValidationInterface = &Plugin{}
)

// Register makes the plugin known to the chain.
func Register(plugins *admission.Plugins) {
	plugins.Register(PluginName, func(from io.Reader) (admission.Interface, error) {
		data, err := pluginconfig.Content(from)
		if err != nil {
			return nil, err
		}
		selectors, err := parse(data)
		return &Plugin{lookup.NewHandler(namespaces, admission.Create), selectors}, err
	})
}

func namespaces(factory informers.SharedInformerFactory) lookup.Informer[corelisters.NamespaceLister] {
	return factory.Core().V1().Namespaces()
}

// Admit adds what the namespace selects.
func (p *Plugin) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	pod, selected, err := p.selected(ctx, a)
	if pod == nil || err != nil {
		return err
	}
	if pod.Spec.NodeSelector, err = merge(pod.Spec.NodeSelector, selected); err != nil {
		return admission.NewForbidden(a, err)
	}
	return nil
}

// Validate refuses a Pod for nodes that are not its namespace's.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	pod, selected, err := p.selected(ctx, a)
	if pod == nil || err != nil {
		return err
	}
	if err := check(pod.Spec.NodeSelector, selected, p.selectors[a.GetNamespace()]); err != nil {
		return admission.NewForbidden(a, err)
	}
	return nil
}

// selected are the Pod that a request makes, nil for another request, and what its namespace selects.
func (p *Plugin) selected(ctx context.Context, a admission.Attributes) (*corev1.Pod, labels.Set, error) {
	pod, err := podrequest.Pod(a)
	if pod == nil || err != nil {
		return nil, nil, err
	}
	if !p.WaitForReady() {
		return nil, nil, admission.NewForbidden(a, errors.New("namespaces are not known yet"))
	}
	namespace, err := lookup.Get(ctx, a.GetNamespace(), p.Objects, p.Client.CoreV1().Namespaces())
	if apierrors.IsNotFound(err) {
		return nil, nil, err
	}
	if err != nil {
		return nil, nil, apierrors.NewInternalError(fmt.Errorf("reading the namespace: %w", err))
	}
	selected, err := ofNamespace(namespace, p.selectors[everywhere])
	if err != nil {
		return nil, nil, admission.NewForbidden(a, err)
	}
	return pod, selected, nil
}
