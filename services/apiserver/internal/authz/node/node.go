// Package node is the Node authorizer: a node may read itself, the Pods that are bound to it, and what those name.
package node

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"keelson.dev/services/apiserver/internal/authz/rbac"
	"keelson.dev/services/apiserver/internal/nodeidentity"
)

// Pods lists the Pods of a namespace that are bound to the node. With the resource version "0" they are what the watch
// cache has, with "" what the store has now. The Pods are shared: they are neither changed nor kept.
type Pods func(ctx context.Context, node, namespace, resourceVersion string) ([]corev1.Pod, error)

// New returns the authorizer. It has no opinion about anybody but nodes.
func New(pods Pods) authorizer.Authorizer { return authorizer.AuthorizerFunc(pods.authorize) }

func (p Pods) authorize(ctx context.Context, attributes authorizer.Attributes) (authorizer.Decision, string, error) {
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
	v := decide(node, r)
	if v.byPods {
		var err error
		if v, err = p.ask(ctx, node, r); err != nil {
			return authorizer.DecisionNoOpinion, "", err
		}
	}
	if v.allowed {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, v.reason, nil
}

// ask decides by the node's Pods. The cache may be behind what the node has seen, so it cannot refuse.
func (p Pods) ask(ctx context.Context, node string, r request) (verdict, error) {
	if pods, err := p(ctx, node, r.Namespace, "0"); err == nil && related(node, r, pods) {
		return allow, nil
	}
	pods, err := p(ctx, node, r.Namespace, "")
	if err != nil {
		return verdict{}, fmt.Errorf("listing the pods of node %q: %w", node, err)
	}
	if related(node, r, pods) {
		return allow, nil
	}
	return refuse("no relationship found between node '%s' and this object", node), nil
}
