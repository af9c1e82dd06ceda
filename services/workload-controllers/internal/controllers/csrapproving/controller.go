// Package csrapproving approves requests for the client certificates of nodes, made by the nodes or by users with the
// right to request them for nodes. Users approve all other requests, including those for the nodes' serving
// certificates.
//
//	decide.go           which requests are approved (pure)
//	decide_explain.go   the explanation of a decision (pure)
//	reconcile.go        observe and apply
//	controller.go       what it reads and writes, and what wakes a request up
package csrapproving

import (
	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"keelson.dev/kit/controller"
	"keelson.dev/kit/explain"
	"keelson.dev/services/workload-controllers/internal/write"
)

// Name is the controller's folder, half of its Lease's name, and its field manager.
const Name = "csrapproving"

// Registration describes the controller. concurrent is how many requests it works on at once.
func Registration(concurrent int) controller.Registration {
	groups := []string{certificatesv1.GroupName}
	return controller.Registration{
		Name:     Name,
		Explains: []string{"CertificateSigningRequest"},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: groups, Resources: []string{"certificatesigningrequests"}, Verbs: []string{"list", "watch"}},
			{APIGroups: groups, Resources: []string{"certificatesigningrequests/approval"}, Verbs: []string{"update"}},
			{APIGroups: groups, Resources: []string{"signers"}, Verbs: []string{"approve"},
				ResourceNames: []string{certificatesv1.KubeAPIServerClientKubeletSignerName}},
			{APIGroups: []string{authorizationv1.GroupName}, Resources: []string{"subjectaccessreviews"},
				Verbs: []string{"create"}},
		},
		Setup: func(s *controller.Setup) (controller.Runnable, error) { return setup(s, concurrent) },
	}
}

func setup(s *controller.Setup, concurrent int) (controller.Runnable, error) {
	c := &Controller{client: write.By(s).Client}
	return controller.Build(s, concurrent, c.steps()).
		Explain(explain.Explainer(c.steps(), account, nil)).
		Watch(controller.Objects(s.Cache, &certificatesv1.CertificateSigningRequest{})).
		Runnable()
}
