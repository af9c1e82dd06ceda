// Package nodeproxy reaches the nodeagents: it finds where a node's agent listens, builds the URL of a container's log
// or of a stream to it, and joins a client's stream to that of the agent.
package nodeproxy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/transport"
)

// Config says who the apiserver is to a nodeagent and whose certificates a nodeagent may show.
type Config struct {
	// ClientCertificate and ClientKey are files; with neither the apiserver shows no certificate.
	ClientCertificate, ClientKey string
	// CertificateAuthority is a file; without it the machine's own authorities decide.
	CertificateAuthority string
}

// AddFlags registers the flags that fill the configuration.
func (c *Config) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&c.ClientCertificate, "nodeagent-client-certificate", c.ClientCertificate,
		"file with the certificate that the apiserver shows to nodeagents")
	flags.StringVar(&c.ClientKey, "nodeagent-client-key", c.ClientKey,
		"file with the key of --nodeagent-client-certificate")
	flags.StringVar(&c.CertificateAuthority, "nodeagent-certificate-authority", c.CertificateAuthority,
		"file with the authorities that sign the nodeagents' serving certificates")
}

// Validate returns every mistake in the configuration.
func (c *Config) Validate() []error {
	if (c.ClientCertificate == "") != (c.ClientKey == "") {
		return []error{errors.New("--nodeagent-client-certificate and --nodeagent-client-key must be given together")}
	}
	return nil
}

// Lookup returns the Node called name.
type Lookup func(ctx context.Context, name string) (*corev1.Node, error)

// Nodes knows the way to each node's agent.
type Nodes struct {
	lookup             Lookup
	verified, insecure http.RoundTripper
}

// New returns the way to the nodes that lookup knows. The certificate files are read again when they change.
func New(c Config, lookup Lookup) (*Nodes, error) {
	files := transport.TLSConfig{
		CertFile: c.ClientCertificate, KeyFile: c.ClientKey, CAFile: c.CertificateAuthority,
		ReloadTLSFiles: c.ClientCertificate != "",
	}
	verified, err := newTransport(files)
	if err != nil {
		return nil, err
	}
	files.CAFile, files.Insecure = "", true
	insecure, err := newTransport(files)
	if err != nil {
		return nil, err
	}
	return &Nodes{lookup: lookup, verified: verified, insecure: insecure}, nil
}

// newTransport speaks HTTP/1.1: an upgraded connection needs one of its own.
func newTransport(files transport.TLSConfig) (http.RoundTripper, error) {
	config, err := transport.TLSConfigFor(&transport.Config{TLS: files})
	if err != nil {
		return nil, fmt.Errorf("reading the nodeagent client certificate: %w", err)
	}
	return utilnet.SetOldTransportDefaults(&http.Transport{
		TLSClientConfig:     config,
		MaxIdleConnsPerHost: 8,
		IdleConnTimeout:     90 * time.Second,
		Proxy:               func(*http.Request) (*url.URL, error) { return nil, nil },
	}), nil
}

// Agent is one node's agent.
type Agent struct {
	// Base is its URL without a path.
	Base url.URL
	// Transport authenticates the apiserver to it and it to the apiserver.
	Transport http.RoundTripper
}

// At returns the URL of a location at the agent.
func (a Agent) At(l Location) *url.URL {
	u := a.Base
	u.Path, u.RawQuery = l.Path, l.Query.Encode()
	return &u
}

// Agent finds the agent of a node. An insecure one may show any certificate: it is for reading logs on a client's wish,
// never for streams.
func (n *Nodes) Agent(ctx context.Context, node string, insecure bool) (Agent, error) {
	found, err := n.lookup(ctx, node)
	if apierrors.IsNotFound(err) {
		// A new error: the store names the resource of the request in ctx, which is the Pod's.
		return Agent{}, apierrors.NewNotFound(corev1.Resource("nodes"), node)
	}
	if err != nil {
		return Agent{}, err // not wrapped: clients get the status that it is
	}
	host, err := Address(found)
	if err != nil {
		return Agent{}, apierrors.NewServiceUnavailable(err.Error())
	}
	agent := Agent{Base: url.URL{Scheme: "https", Host: host}, Transport: n.verified}
	if insecure {
		agent.Transport = n.insecure
	}
	return agent, nil
}

// Unreachable says in one sentence, and with the status of a passing failure, that a node's agent was asked in vain. An
// answer of the agent itself is handed on as it is.
func Unreachable(node string, err error) error {
	var status apierrors.APIStatus
	if err == nil || errors.As(err, &status) {
		return err
	}
	var request *url.Error
	if errors.As(err, &request) {
		err = request.Err
	}
	return apierrors.NewServiceUnavailable(fmt.Sprintf("the agent of node %s does not answer: %v", node, err))
}
