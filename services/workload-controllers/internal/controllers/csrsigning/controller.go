// Package csrsigning issues what the signers of Kubernetes issue, as soon as somebody has approved it: client
// certificates, and the client and serving certificates of nodes. It exists where the daemon is given an authority.
//
//	decide.go           what is signed, and what is refused (pure)
//	decide_explain.go   what a decision came to, in words (pure)
//	reconcile.go        observe and apply
//	controller.go       what it reads and writes, and what wakes a request up
package csrsigning

import (
	"fmt"

	certificatesv1 "k8s.io/api/certificates/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"keelson.dev/kit/controller"
	"keelson.dev/kit/explain"
	"keelson.dev/services/workload-controllers/internal/signers"
	"keelson.dev/services/workload-controllers/internal/write"
)

// Name is the controller's folder, half of its Lease's name, and its field manager.
const Name = "csrsigning"

// Registration describes the controller. files is the authority; concurrent is how many requests it works on at once.
func Registration(files signers.Files, concurrent int) controller.Registration {
	groups := []string{certificatesv1.GroupName}
	return controller.Registration{
		Name:     Name,
		Explains: []string{"CertificateSigningRequest"},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: groups, Resources: []string{"certificatesigningrequests"}, Verbs: []string{"list", "watch"}},
			{APIGroups: groups, Resources: []string{"certificatesigningrequests/status"}, Verbs: []string{"update"}},
			{APIGroups: groups, Resources: []string{"signers"}, Verbs: []string{"sign"},
				ResourceNames: signers.Names()},
		},
		Setup: func(s *controller.Setup) (controller.Runnable, error) { return setup(s, files, concurrent) },
	}
}

func setup(s *controller.Setup, files signers.Files, concurrent int) (controller.Runnable, error) {
	own := client.WithFieldOwner(s.Client, Name)
	c := &Controller{files: files, writer: &write.Writer{Client: own, Kind: "certificatesigningrequest"}}
	built, err := controller.NewReconciler(s, concurrent, c.steps())
	if err != nil {
		return nil, err
	}
	s.Explain(explain.Explainer(c.steps(), account, nil))
	requests := source.Kind(s.Cache, &certificatesv1.CertificateSigningRequest{},
		&handler.TypedEnqueueRequestForObject[*certificatesv1.CertificateSigningRequest]{})
	if err := built.Watch(requests); err != nil {
		return nil, fmt.Errorf("watching CertificateSigningRequests: %w", err)
	}
	return built, nil
}
