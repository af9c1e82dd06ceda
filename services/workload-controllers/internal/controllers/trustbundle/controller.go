// Package trustbundle publishes the CA of the apiserver as a ClusterTrustBundle of the signer
// kubernetes.io/kube-apiserver-serving, and deletes the bundles of earlier authorities.
//
//	decide.go           which bundles must exist (pure)
//	decide_explain.go   the explanation of a decision (pure)
//	reconcile.go        observe and apply
//	controller.go       what it reads and writes, and what triggers a pass
package trustbundle

import (
	"context"
	"fmt"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"keelson.dev/kit/controller"
	"keelson.dev/kit/trustbundle"
	"keelson.dev/services/workload-controllers/internal/owncache"
	"keelson.dev/services/workload-controllers/internal/wake"
	"keelson.dev/services/workload-controllers/internal/write"
)

// Name is the controller's folder, half of its Lease's name, and its field manager.
const Name = "trustbundle"

// Registration describes the controller. rootCA is the PEM text to publish.
func Registration(rootCA []byte) controller.Registration {
	groups := []string{certificatesv1.GroupName}
	return controller.Registration{
		Name: Name, Explains: []string{"ClusterTrustBundle"},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: groups, Resources: []string{"clustertrustbundles"}, Verbs: []string{"list", "watch", "create",
				"update", "delete"}},
			{APIGroups: groups, Resources: []string{"signers"}, Verbs: []string{"attest"},
				ResourceNames: []string{trustbundle.KubeAPIServerServing}},
		},
		Setup: func(s *controller.Setup) (controller.Runnable, error) { return setup(s, string(rootCA)) },
	}
}

func setup(s *controller.Setup, rootCA string) (controller.Runnable, error) {
	if wrong := trustbundle.Check(rootCA); len(wrong) > 0 {
		s.Failed(fmt.Errorf("--root-ca-file cannot be a ClusterTrustBundle, and none is published: %s",
			strings.Join(wrong, "; ")))
		return idle{}, nil
	}
	published, err := owncache.New(s, "spec.signerName", trustbundle.KubeAPIServerServing)
	if err != nil {
		return nil, err
	}
	c := &Controller{published: published, rootCA: rootCA, writer: write.By(s).Ungated("clustertrustbundle")}
	onBundle := func(context.Context, *bundle) []reconcile.Request { return []reconcile.Request{pass} }
	return controller.Build(s, 1, c).
		Explain(c.explain).
		Watch(source.Kind(published, &bundle{}, handler.TypedEnqueueRequestsFromMapFunc(onBundle))).
		// The first pass must happen even if no bundle exists.
		Queue(func(q wake.Queue) { q.Add(pass) }).
		Beside(published.Start).
		Runnable()
}

// pass is the request that every event queues.
var pass = wake.Request("", trustbundle.KubeAPIServerServing)

// idle is a controller without work.
type idle struct{}

// Start waits for the end of the term.
func (idle) Start(ctx context.Context) error {
	<-ctx.Done()
	return nil
}
