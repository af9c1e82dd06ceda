package bind

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
)

// Directly returns the client's Pods with a cheaper request for bindings, of which each Pod takes one. The client joins
// the path again from its parts each time it reads it, four times a request, and parses query parameters where there
// are none.
func Directly(client v1.CoreV1Interface) v1.PodsGetter { return directly{client, client.RESTClient()} }

type directly struct {
	v1.PodsGetter
	rest rest.Interface
}

// Pods implements PodsGetter.
func (d directly) Pods(namespace string) v1.PodInterface {
	return boundDirectly{d.PodsGetter.Pods(namespace), d.rest, namespace}
}

type boundDirectly struct {
	v1.PodInterface
	rest      rest.Interface
	namespace string
}

// Bind implements PodExpansion. The binding names a Pod that came from the server: no part of the path needs a check.
func (p boundDirectly) Bind(ctx context.Context, binding *corev1.Binding, options metav1.CreateOptions) error {
	if options.DryRun != nil || options.FieldManager != "" || options.FieldValidation != "" {
		return p.PodInterface.Bind(ctx, binding, options)
	}
	path := "/api/v1/namespaces/" + p.namespace + "/pods/" + binding.Name + "/binding"
	return p.rest.Post().AbsPath(path).Body(binding).Do(ctx).Error()
}
