package csrapproving

import (
	"context"
	"fmt"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"keelson.dev/kit/failpoint"
	"keelson.dev/kit/pass"
)

// Controller approves requests. It needs no gate: each write carries the resource version that it is about.
type Controller struct{ client client.Client }

// steps are what a pass over a request consists of.
func (c *Controller) steps() *pass.Steps[*csr, Input, Plan] {
	return &pass.Steps[*csr, Input, Plan]{
		Reader:  c.client,
		New:     func() *csr { return &csr{} },
		Observe: c.observe,
		Decide:  Decide,
		Apply:   c.apply,
		After:   func(_ Input, plan Plan) time.Duration { return plan.After },
	}
}

func (c *Controller) observe(ctx context.Context, r *csr) (Input, bool, error) {
	if r.DeletionTimestamp != nil {
		return Input{}, false, nil
	}
	in := Input{Request: r, Allowed: map[string]bool{}, Now: time.Now()}
	for _, f := range formsOf(r) {
		allowed, err := c.mayCreate(ctx, &r.Spec, f.subresource)
		if err != nil {
			return in, false, err
		}
		if in.Allowed[f.subresource] = allowed; allowed {
			break // one is enough
		}
	}
	return in, true, nil
}

// mayCreate asks the apiserver whether the requester has the right to create the subresource.
func (c *Controller) mayCreate(ctx context.Context, spec *certificatesv1.CertificateSigningRequestSpec,
	subresource string) (bool, error) {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: spec.Username, UID: spec.UID, Groups: spec.Groups,
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "create", Group: certificatesv1.GroupName,
			Version: "*", Resource: "certificatesigningrequests", Subresource: subresource},
	}}
	for key, values := range spec.Extra {
		if review.Spec.Extra == nil {
			review.Spec.Extra = map[string]authorizationv1.ExtraValue{}
		}
		review.Spec.Extra[key] = authorizationv1.ExtraValue(values)
	}
	if err := c.client.Create(ctx, review); err != nil {
		return false, fmt.Errorf("asking what %q may do: %w", spec.Username, err)
	}
	return review.Status.Allowed && !review.Status.Denied, nil
}

// apply carries the plan out.
func (c *Controller) apply(ctx context.Context, in Input, plan Plan) error {
	if plan.Approve == nil {
		return nil
	}
	next := in.Request.DeepCopy()
	next.Status.Conditions = append(next.Status.Conditions, *plan.Approve)
	err := failpoint.Around("workload-controllers/certificatesigningrequest.approval", func() error {
		return c.client.SubResource("approval").Update(ctx, next)
	})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("approving: %w", err)
	}
	return nil
}
