// Package csrcleaner deletes expired requests for certificates.
//
//	decide.go           when a request is deleted (pure)
//	decide_explain.go   the explanation of a decision (pure)
//	controller.go       what it reads and writes, what wakes a request up, and the pass
package csrcleaner

import (
	"context"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"keelson.dev/kit/controller"
	"keelson.dev/kit/explain"
	"keelson.dev/kit/pass"
	"keelson.dev/services/workload-controllers/internal/write"
)

// Name is the controller's folder, half of its Lease's name, and its field manager.
const Name = "csrcleaner"

// Registration describes the controller. concurrent is how many requests it works on at once.
func Registration(concurrent int) controller.Registration {
	return controller.Registration{
		Name:     Name,
		Explains: []string{"CertificateSigningRequest"},
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{certificatesv1.GroupName},
			Resources: []string{"certificatesigningrequests"}, Verbs: []string{"delete", "list", "watch"}}},
		Setup: func(s *controller.Setup) (controller.Runnable, error) { return setup(s, concurrent) },
	}
}

func setup(s *controller.Setup, concurrent int) (controller.Runnable, error) {
	c := &Controller{writer: write.By(s).Ungated("certificatesigningrequest")}
	return controller.Build(s, concurrent, c.steps()).
		Explain(explain.Explainer(c.steps(), account, nil)).
		Watch(controller.Objects(s.Cache, &csr{})).
		Runnable()
}

// Controller deletes requests. It needs no gate: each delete carries the resource version that it is about.
type Controller struct{ writer *write.Writer }

// steps are what a pass over a request consists of.
func (c *Controller) steps() *pass.Steps[*csr, Input, Plan] {
	return &pass.Steps[*csr, Input, Plan]{
		Reader: c.writer.Client,
		New:    func() *csr { return &csr{} },
		Observe: func(_ context.Context, r *csr) (Input, bool, error) {
			return Input{Request: r, Now: time.Now()}, r.DeletionTimestamp == nil, nil
		},
		Decide: Decide,
		Apply: func(ctx context.Context, in Input, plan Plan) error {
			if !plan.Delete {
				return nil
			}
			return c.writer.Delete(ctx, in.Request.UID, in.Request)
		},
		After: func(_ Input, plan Plan) time.Duration { return plan.After },
	}
}
