package leanclient

import (
	"context"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

// Pods returns the Pods of a namespace. Create and Patch return only what identifies the Pod and its version.
func (c *Client) Pods(namespace string) corev1client.PodInterface {
	return &pods{PodInterface: c.PodsGetter.Pods(namespace), client: c, namespace: namespace}
}

type pods struct {
	corev1client.PodInterface

	client    *Client
	namespace string
}

// Create makes the Pod, which it does not change.
func (p *pods) Create(ctx context.Context, pod *corev1.Pod, o metav1.CreateOptions) (*corev1.Pod, error) {
	if len(o.DryRun) > 0 || o.FieldValidation != "" {
		return p.PodInterface.Create(ctx, pod, o)
	}
	body, err := encode(pod)
	if err != nil {
		return nil, fmt.Errorf("encoding a Pod: %w", err)
	}
	return p.client.written(ctx, request{method: http.MethodPost, resource: podResource, namespace: p.namespace,
		manager:  o.FieldManager,
		bodyType: runtime.ContentTypeProtobuf, body: body})
}

// Patch changes a Pod.
func (p *pods) Patch(ctx context.Context, name string, kind types.PatchType, data []byte, o metav1.PatchOptions,
	subresources ...string) (*corev1.Pod, error) {
	if len(subresources) > 0 || len(o.DryRun) > 0 || o.FieldValidation != "" || o.Force != nil ||
		p.client.headers[string(kind)] == nil {
		return p.PodInterface.Patch(ctx, name, kind, data, o, subresources...)
	}
	if err := checkName("Pod", name); err != nil {
		return nil, err
	}
	return p.client.written(ctx, request{method: http.MethodPatch, resource: podResource, namespace: p.namespace,
		name:    name,
		manager: o.FieldManager, bodyType: string(kind), body: data})
}

// Delete ends a Pod.
func (p *pods) Delete(ctx context.Context, name string, o metav1.DeleteOptions) error {
	if err := checkName("Pod", name); err != nil {
		return err
	}
	body, err := encodeOptions(&o)
	if err != nil {
		return fmt.Errorf("encoding the options of a deletion: %w", err)
	}
	return p.client.do(ctx, request{method: http.MethodDelete, resource: podResource, namespace: p.namespace,
		name:     name,
		bodyType: runtime.ContentTypeProtobuf, body: body}, func([]byte) error { return nil })
}

// written makes a request and returns the Pod that it wrote.
func (c *Client) written(ctx context.Context, r request) (*corev1.Pod, error) {
	pod := &corev1.Pod{}
	err := c.do(ctx, r, func(body []byte) error { return decode(body, &pod.ObjectMeta) })
	if err != nil {
		return nil, err
	}
	return pod, nil
}
