// Package podtopologylabels is the admission plugin PodTopologyLabels: a Pod that gets a Node gets its zone and region
// as labels, so that what runs in it can read them by the downward API.
package podtopologylabels

import (
	"context"
	"errors"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/admission"

	"keelson.dev/services/apiserver/internal/admission/podrequest"
)

// PluginName is the name by which Kubernetes knows the plugin.
const PluginName = "PodTopologyLabels"

// Node reads a Node; an error that it is not there is the API's.
type Node func(ctx context.Context, name string) (*corev1.Node, error)

// WantsNode is what a plugin implements that reads a Node.
type WantsNode interface {
	SetNode(node Node)
}

// Plugin labels bindings, from which the Pod takes the labels over, and Pods that are made on a Node.
type Plugin struct {
	*admission.Handler
	node Node
}

var (
	_ admission.MutationInterface = &Plugin{}
	_ WantsNode                   = &Plugin{}
)

// Register makes the plugin known to the chain.
func Register(plugins *admission.Plugins) {
	plugins.Register(PluginName, func(io.Reader) (admission.Interface, error) {
		return &Plugin{Handler: admission.NewHandler(admission.Create)}, nil
	})
}

// SetNode implements WantsNode.
func (p *Plugin) SetNode(node Node) { p.node = node }

// ValidateInitialization implements InitializationValidator.
func (p *Plugin) ValidateInitialization() error {
	if p.node == nil {
		return errors.New("it has no way to read a Node")
	}
	return nil
}

// Admit labels what leads a Pod to a Node. A Node that is not there has no labels.
func (p *Plugin) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if binds(a) {
		binding, ok := a.GetObject().(*corev1.Binding)
		if !ok {
			return apierrors.NewBadRequest(fmt.Sprintf("expected a Binding, got %T", a.GetObject()))
		}
		if kind := binding.Target.Kind; kind != "" && kind != "Node" {
			return nil
		}
		return p.label(ctx, binding.Target.Name, &binding.Labels)
	}
	pod, err := podrequest.Pod(a)
	if pod == nil || err != nil {
		return err
	}
	return p.label(ctx, pod.Spec.NodeName, &pod.Labels)
}

// binds reports whether the request gives a Pod a Node.
func binds(a admission.Attributes) bool {
	switch a.GetResource().GroupResource() {
	case corev1.Resource("pods"):
		return a.GetSubresource() == "binding"
	case corev1.Resource("bindings"):
		return a.GetSubresource() == ""
	}
	return false
}

func (p *Plugin) label(ctx context.Context, name string, labels *map[string]string) error {
	if name == "" {
		return nil
	}
	node, err := p.node(ctx, name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the node %s: %w", name, err)
	}
	*labels = decide(*labels, node.Labels)
	return nil
}
