// Package scales reads and writes how many replicas an object is to have, of whatever kind that has a scale: the kind
// is found by discovery.
package scales

import (
	"context"
	"errors"
	"fmt"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/scale"
)

// ErrNone says that objects of a kind have no scale.
var ErrNone = errors.New("its kind has no scale")

// Client reads and writes scales.
type Client struct {
	mapper meta.RESTMapper
	scales scale.ScalesGetter
	served discovery.ServerResourcesInterface
}

// Found is the scale of an object of Resource.
type Found struct {
	Resource schema.GroupResource
	Scale    *autoscalingv1.Scale
}

// Connect makes a Client.
func Connect(config *rest.Config, mapper meta.RESTMapper) (*Client, error) {
	served, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("building the discovery client: %w", err)
	}
	getter, err := scale.NewForConfig(rest.CopyConfig(config), mapper, dynamic.LegacyAPIPathResolverFunc,
		scale.NewDiscoveryScaleKindResolver(served))
	if err != nil {
		return nil, fmt.Errorf("building the client for scales: %w", err)
	}
	return &Client{mapper: mapper, scales: getter, served: served}, nil
}

// Mappings are the resources of a kind.
func (c *Client) Mappings(kind schema.GroupKind) ([]*meta.RESTMapping, error) {
	return c.mapper.RESTMappings(kind)
}

// Read reads the scale of an object. The first of the resources that has one counts; if none does, the first one's
// error is returned.
func (c *Client) Read(ctx context.Context, mappings []*meta.RESTMapping, namespace, name string) (Found, error) {
	var first error
	for _, mapping := range mappings {
		resource := mapping.Resource.GroupResource()
		found, err := c.scales.Scales(namespace).Get(ctx, resource, name, metav1.GetOptions{})
		if err == nil {
			return Found{Resource: resource, Scale: found}, nil
		}
		if first == nil {
			first = err
		}
	}
	return Found{}, first
}

// OfKind is Read for an object whose kind may have no scale: then it returns ErrNone, where Read would say that
// something was not found.
func (c *Client) OfKind(ctx context.Context, kind schema.GroupKind, namespace, name string) (Found, error) {
	mappings, err := c.Mappings(kind)
	if err != nil {
		return Found{}, err
	}
	found, err := c.Read(ctx, mappings, namespace, name)
	if !apierrors.IsNotFound(err) {
		return found, err
	}
	for _, mapping := range mappings {
		served, listErr := c.served.ServerResourcesForGroupVersion(mapping.Resource.GroupVersion().String())
		if listErr != nil {
			return Found{}, listErr
		}
		for i := range served.APIResources {
			if served.APIResources[i].Name == mapping.Resource.Resource+"/scale" {
				return Found{}, err
			}
		}
	}
	return Found{}, ErrNone
}

// Write gives the object another number of replicas, provided that no other client has changed it since it was read.
func (c *Client) Write(ctx context.Context, found Found, replicas int32, manager string) error {
	next := found.Scale.DeepCopy()
	next.Spec.Replicas = replicas
	_, err := c.scales.Scales(next.Namespace).Update(ctx, found.Resource, next,
		metav1.UpdateOptions{FieldManager: manager})
	return err
}
