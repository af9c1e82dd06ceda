package server

import (
	"errors"
	"fmt"
	"sync"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/informers"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/openapi"

	"keelson.dev/kit/follow"
)

// waitingClient is a client whose OpenAPI documents are asked for once a policy needs them. The library's plugin asks
// every five seconds from its start on, and what is asked for is kept: tens of MiB, for policies that nobody has.
type waitingClient struct {
	clientset.Interface
	needed, ended <-chan struct{}
}

// newWaitingClient waits for the first policy that applies configurations, or for the end.
func newWaitingClient(client clientset.Interface, all informers.SharedInformerFactory, ended <-chan struct{}) (
	clientset.Interface, error) {
	needed := make(chan struct{})
	tell := sync.OnceFunc(func() { close(needed) })
	_, err := all.Admissionregistration().V1().MutatingAdmissionPolicies().Informer().AddEventHandler(
		follow.Handler(func(p *admissionregistrationv1.MutatingAdmissionPolicy) {
			for _, m := range p.Spec.Mutations {
				if m.PatchType == admissionregistrationv1.PatchTypeApplyConfiguration {
					tell()
				}
			}
		}, func(*admissionregistrationv1.MutatingAdmissionPolicy) {}))
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
func (d waitingDiscovery) OpenAPIV3() openapi.Client {
	return waitingDocuments{d.DiscoveryInterfaces.OpenAPIV3(), d.client}
}

type waitingDocuments struct {
	openapi.Client
	client waitingClient
}

// Paths implements openapi.Client.
func (d waitingDocuments) Paths() (map[string]openapi.GroupVersion, error) {
	select {
	case <-d.client.needed:
		return d.Client.Paths()
	case <-d.client.ended:
		return nil, errors.New("the server has ended")
	}
}
