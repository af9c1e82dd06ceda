package mesh

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/transport"

	"keelson.dev/cli/internal/plan"
	introspectionv1 "keelson.dev/proto/keelson/introspection/v1"
)

// noticed is how soon keel uses the certificate that a worker's agent receives while keel waits for its node:
// client-go checks at this interval whether an open connection uses an outdated certificate.
const noticed = time.Second

// noticeSoon sets that interval for connections that are made afterwards.
var noticeSoon = sync.OnceFunc(func() { transport.CertCallbackRefreshDuration = noticed })

// Client returns a client with the operator's credentials; on a worker, with those of its node.
func (m *Mesh) Client() (kubernetes.Interface, error) {
	config, err := m.clientConfig()
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("building a client: %w", err)
	}
	return client, nil
}

// DynamicClient returns a client with the same credentials for objects of any kind.
func (m *Mesh) DynamicClient() (dynamic.Interface, error) {
	config, err := m.clientConfig()
	if err != nil {
		return nil, err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("building a client: %w", err)
	}
	return client, nil
}

func (m *Mesh) clientConfig() (*rest.Config, error) {
	file := cmp.Or(m.Kubeconfig, m.Layout.Kubeconfig(plan.AdminCertificate))
	if m.Kubeconfig == "" && m.State.Worker() {
		file = m.workerFiles().Kubeconfig()
		noticeSoon()
	}
	config, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	config.UserAgent, config.QPS = "keel", -1
	config.WarningHandler = rest.NoWarnings{} // keel chooses what it asks for: a warning tells its user nothing
	return config, nil
}

// givenTLS returns the configuration that the given kubeconfig has for TLS.
func (m *Mesh) givenTLS() (*tls.Config, error) {
	config, err := m.clientConfig()
	if err != nil {
		return nil, err
	}
	config.TLSClientConfig.ServerName = "" // it would be the apiserver's
	trust, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	if trust == nil { // it names neither a CA nor a certificate
		trust = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return trust, nil
}

// Introspection returns a client for the introspection service of a process. It connects on the first call.
func (m *Mesh) Introspection(process string) (introspectionv1.IntrospectionServiceClient, func() error, error) {
	config, err := m.TLSClient()
	if err != nil {
		return nil, nil, err
	}
	conn, err := grpc.NewClient(m.StatusAddress(process), grpc.WithTransportCredentials(credentials.NewTLS(config)))
	if err != nil {
		return nil, nil, fmt.Errorf("dialing %s: %w", process, err)
	}
	return introspectionv1.NewIntrospectionServiceClient(conn), conn.Close, nil
}
