// Package node is the Node authorizer: a node may read itself, the Pods that are bound to
// it, what those name, the volumes that are its own folders, what attaches volumes to it, what the drivers of its Pods'
// volumes identify themselves with, and the slices of its own devices.
package node

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"keelson.dev/services/apiserver/internal/authz/rbac"
	"keelson.dev/services/apiserver/internal/nodeidentity"
)

// Pods lists the Pods of a namespace that are bound to the node. With the resource version "0" they are what the watch
// cache has, with "" what the store has now. The Pods are shared: they are neither changed nor kept.
type Pods func(ctx context.Context, node, namespace, resourceVersion string) ([]corev1.Pod, error)

// Volume reads a PersistentVolume at a resource version, as Pods does. It is shared, too.
type Volume func(ctx context.Context, name, resourceVersion string) (*corev1.PersistentVolume, error)

// Objects are what a node's rights depend on.
type Objects struct {
	Pods       Pods
	Volume     Volume
	Claim      Claim
	Attachment Attachment
	Slice      Slice
}

// New returns the authorizer. It has no opinion about anybody but nodes.
func New(objects Objects) authorizer.Authorizer { return authorizer.AuthorizerFunc(objects.authorize) }

func (o Objects) authorize(ctx context.Context, attributes authorizer.Attributes) (authorizer.Decision, string, error) {
	node, isNode := nodeidentity.Of(attributes.GetUser())
	switch {
	case !isNode:
		return authorizer.DecisionNoOpinion, "", nil
	case node == "":
		return authorizer.DecisionNoOpinion, fmt.Sprintf("unknown node for user %q", attributes.GetUser().GetName()),
			nil
	}
	r := request{Request: rbac.RequestOf(attributes)}
	// What cannot be parsed selects nothing.
	r.fields, _ = attributes.GetFieldSelector()
	r.labels, _ = attributes.GetLabelSelector()
	v := decide(node, r)
	var err error
	switch v.by {
	case byVolume:
		v, err = o.askVolume(ctx, node, r)
	case byPods:
		v, err = o.askPods(ctx, node, r)
		if err == nil && !v.allowed && mayBeOfDriver(r) {
			v, err = o.askDrivers(ctx, node, r)
		}
	case byAttachment:
		v, err = ask(ctx, node, r, o.Attachment, ofAttachment)
	case bySlice:
		v, err = ask(ctx, node, r, o.Slice, ofSlice)
	}
	if err != nil {
		return authorizer.DecisionNoOpinion, "", err
	}
	if v.allowed {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, v.reason, nil
}

// askPods decides by the node's Pods. The cache may be behind what the node has seen, so it cannot refuse.
func (o Objects) askPods(ctx context.Context, node string, r request) (verdict, error) {
	if pods, err := o.Pods(ctx, node, r.Namespace, "0"); err == nil && related(node, r, pods) {
		return allow, nil
	}
	pods, err := o.Pods(ctx, node, r.Namespace, "")
	if err != nil {
		return verdict{}, fmt.Errorf("listing the pods of node %q: %w", node, err)
	}
	if related(node, r, pods) {
		return allow, nil
	}
	return refuse(unrelated, node), nil
}

// askVolume decides by the volume, and by the node's Pods if that is bound to a claim. Here, too, the cache cannot
// refuse. That a volume does not exist is not for every node to know.
func (o Objects) askVolume(ctx context.Context, node string, r request) (verdict, error) {
	v := refuse(unrelated, node)
	for _, version := range []string{"0", ""} {
		volume, err := o.Volume(ctx, r.Name, version)
		switch {
		case apierrors.IsNotFound(err) || err != nil && version == "0":
			continue
		case err != nil:
			return verdict{}, fmt.Errorf("reading the volume %q: %w", r.Name, err)
		}
		var claim request
		if v, claim = ofVolume(node, r, volume); v.by == byPods {
			if v, err = o.askPods(ctx, node, claim); err != nil {
				return verdict{}, err
			}
		}
		if v.allowed {
			break
		}
	}
	return v, nil
}
