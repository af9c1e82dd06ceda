// Package csrsigning issues the certificates of Kubernetes' built-in signers, once their requests are approved: client
// certificates, and the client and serving certificates of nodes. It exists only if the daemon has a signing authority.
//
//	decide.go           what is signed, and what is refused (pure)
//	decide_explain.go   the explanation of a decision (pure)
//	reconcile.go        observe and apply
//	controller.go       what it reads and writes, and what wakes a request up
package csrsigning

import (
	certificatesv1 "k8s.io/api/certificates/v1"
	rbacv1 "k8s.io/api/rbac/v1"

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
	c := &Controller{files: files, writer: write.By(s).Ungated("certificatesigningrequest")}
	return controller.Build(s, concurrent, c.steps()).
		Explain(explain.Explainer(c.steps(), account, nil)).
		Watch(controller.Objects(s.Cache, &certificatesv1.CertificateSigningRequest{})).
		Runnable()
}
