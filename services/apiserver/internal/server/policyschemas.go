package server

import (
	"fmt"
	"sync"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/informers"
	clientset "k8s.io/client-go/kubernetes"
	openapiclient "k8s.io/client-go/openapi"

	"keelson.dev/kit/follow"
	"keelson.dev/services/apiserver/internal/openapi"
	"keelson.dev/services/apiserver/internal/policystatus"
)

// newPolicyChecker returns who tells what is wrong with the expressions of policies. What it knows of the kinds is made
// for the first policy.
func (s *Server) newPolicyChecker(mapper meta.RESTMapper) (*policystatus.Checker, error) {
	types := sync.OnceValue(func() *validating.TypeChecker {
		own := resolver.NewDefinitionsSchemaResolver(openapi.GetOpenAPIDefinitions, s.scheme)
		return &validating.TypeChecker{RestMapper: mapper,
			SchemaResolver: own.Combine(&resolver.ClientDiscoveryResolver{Discovery: s.client.Discovery()})}
	})
	return policystatus.New(policystatus.Config{
		Client:   s.client.AdmissionregistrationV1().ValidatingAdmissionPolicies(),
		Policies: s.informers.Admissionregistration().V1().ValidatingAdmissionPolicies().Informer(),
		Check: func(p *admissionregistrationv1.ValidatingAdmissionPolicy) []admissionregistrationv1.ExpressionWarning {
			return types().Check(p)
		},
		Log: s.log.Named("policystatus"),
	})
}

// waitingClient is a client that requests OpenAPI documents only once a policy needs them. The library's plugin
// requests them every five seconds from its start on, and keeps them: tens of MiB, even without any policy.
type waitingClient struct {
	clientset.Interface
	needed, ended <-chan struct{}
}

// newWaitingClient waits for the first MutatingAdmissionPolicy, or for the end.
func newWaitingClient(client clientset.Interface, all informers.SharedInformerFactory, ended <-chan struct{}) (
	clientset.Interface, error) {
	needed := make(chan struct{})
	tell := sync.OnceFunc(func() { close(needed) })
	_, err := all.Admissionregistration().V1().MutatingAdmissionPolicies().Informer().AddEventHandler(
		follow.Changes(tell))
	if err != nil {
		return nil, fmt.Errorf("watching MutatingAdmissionPolicies: %w", err)
	}
	return waitingClient{client, needed, ended}, nil
}

// Discovery implements clientset.Interface.
func (c waitingClient) Discovery() discovery.DiscoveryInterfaces {
	return waitingDiscovery{c.Interface.Discovery(), c}
}

type waitingDiscovery struct {
	discovery.DiscoveryInterfaces
	client waitingClient
}

// OpenAPIV3 implements discovery.DiscoveryInterface.
func (d waitingDiscovery) OpenAPIV3() openapiclient.Client {
	return waitingDocuments{d.DiscoveryInterfaces.OpenAPIV3(), d.client}
}

type waitingDocuments struct {
	openapiclient.Client
	client waitingClient
}

// Paths implements openapiclient.Client.
func (d waitingDocuments) Paths() (map[string]openapiclient.GroupVersion, error) {
	select {
	case <-d.client.needed:
		return d.Client.Paths()
	case <-d.client.ended:
		return nil, nil // the server stops, and the library would log an error
	}
}
