package pod

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/filters"
)

// creation is a request as if it came by POST.
type creation struct{ authorizer.Attributes }

func (creation) GetVerb() string  { return "create" }
func (creation) IsReadOnly() bool { return false }

// mayCreate refuses whoever may not create the connection that the request asks for. A WebSocket opens by GET, so the
// request itself has only shown that its user may read; Kubernetes asks for both since v1.35
// (AuthorizePodWebsocketUpgradeCreatePermission).
func mayCreate(ctx context.Context, by authorizer.Authorizer) error {
	asked, err := filters.GetAuthorizerAttributes(ctx)
	if err != nil {
		return apierrors.NewInternalError(fmt.Errorf("authorizing a connection: %w", err))
	}
	attributes := creation{asked}
	if asked.GetVerb() == attributes.GetVerb() {
		return nil
	}
	decision, reason, err := by.Authorize(ctx, attributes)
	if decision == authorizer.DecisionAllow {
		return nil
	}
	if err != nil {
		return apierrors.NewInternalError(fmt.Errorf("authorizing a connection: %w", err))
	}
	refusal := fmt.Errorf(
		"user %q cannot create resource %q in API group %q in the namespace %q",
		asked.GetUser().GetName(),
		asked.GetResource()+"/"+asked.GetSubresource(),
		asked.GetAPIGroup(),
		asked.GetNamespace(),
	)
	if reason != "" {
		refusal = fmt.Errorf("%w: %s", refusal, reason)
	}
	return apierrors.NewForbidden(schema.GroupResource{Group: asked.GetAPIGroup(), Resource: asked.GetResource()},
		asked.GetName(), refusal)
}
