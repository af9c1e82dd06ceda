// Package nodecertificates requests the node's certificates from the API (CertificateSigningRequests,
// certificates.k8s.io) and renews them before they expire, as the kubelet does: the first client certificate with
// the rights of a bootstrap kubeconfig, the later ones as the node itself (connect.go), and the serving certificate
// of the node API for the Node's addresses (serving.go). client-go's package csr makes the requests, and its
// Manager times them; this package decides with which pair an agent starts (decide.go), and keeps each pair in one
// file (store.go).
package nodecertificates

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"
	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/transport"
	"k8s.io/client-go/util/certificate"

	"keelson.dev/kit/client"
	"keelson.dev/kit/wakeup"
)

// clientFile is the name of the client certificate's file in the folder, the same as the kubelet's.
const clientFile = "kubelet-client-current.pem"

// Client is the node's client certificate.
type Client struct {
	Settings
	// Node is the node's name, Kubeconfig the file with the agent's access to the API.
	Node, Kubeconfig string
	Log              *zap.Logger
	// Failed counts failed requests; it may be nil.
	Failed certificate.Counter
}

// noticed is how soon after a renewal the connections with the old certificate are closed: the apiserver accepts
// the old certificate until it expires, and no longer on an open connection either. client-go checks the files of a
// connection's certificate at this interval; its default of five minutes is longer than the remaining life of the
// shortest-lived certificates.
const noticed = 10 * time.Second

// noticeSoon sets the interval for later connections.
var noticeSoon = sync.OnceFunc(func() { transport.CertCallbackRefreshDuration = noticed })

// Connect returns the agent's connection to the API. It first waits until the node has a client certificate, which
// an approver may have to approve, and renews the certificate until ctx ends if that is enabled.
func (c Client) Connect(ctx context.Context) (*rest.Config, error) {
	pairs, err := openStore(c.Dir, clientFile, c.Node, x509.ExtKeyUsageClientAuth)
	if err != nil {
		return nil, err
	}
	given, err := readKubeconfig(c.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig: %w", err)
	}
	from, reason, err := c.source(given, pairs)
	if err != nil {
		return nil, err
	}
	if reason != nil {
		c.Log.Info("the kubeconfig names no client certificate of use", zap.Error(reason),
			zap.String("now", string(from)))
	}
	switch from {
	case asGiven:
		if c.Rotate {
			c.Log.Warn("nothing renews what the kubeconfig says: it is no valid client certificate of this node")
		}
		return c.read("kubeconfig", c.Kubeconfig)
	case seeded:
		_, err = pairs.Update(given.pair())
	case asked:
		given, err = c.ask(ctx, pairs)
	case fromStore:
	}
	if err != nil {
		return nil, err
	}
	return c.keep(ctx, given, pairs)
}

// keep returns a connection with the pair of the store, and renews the pair if that is enabled.
func (c Client) keep(ctx context.Context, given *kubeconfigFile, pairs *store) (*rest.Config, error) {
	own := func() (*rest.Config, error) {
		return clientcmd.NewDefaultClientConfig(*given.as(pairs.file), nil).ClientConfig()
	}
	connection, err := own()
	if err != nil || !c.Rotate {
		return connection, err
	}
	noticeSoon()
	bundle, err := Authorities(connection)
	if err != nil {
		return nil, err
	}
	manager, err := pairs.renewing(pairs, bundle)
	if err != nil {
		return nil, err
	}
	return connection, c.renew(ctx, manager, func(current *tls.Certificate) (*rest.Config, error) {
		if current == nil {
			return c.bootstrap()
		}
		return own()
	})
}

// source returns where the pair comes from.
func (c Client) source(given *kubeconfigFile, pairs *store) (from source, reason, err error) {
	in := found{Node: c.Node, Now: time.Now(), Bootstrap: c.Bootstrap != "", Rotate: c.Rotate}
	if in.Stored, err = pairs.read(); err != nil {
		return "", nil, err
	}
	if given != nil {
		in.Kubeconfig, in.NamesPair, in.Named = true, given.namesPair(), joined(given.pair())
	}
	from, reason = decide(in)
	if from == asked && !in.Bootstrap {
		return "", nil, fmt.Errorf("--kubeconfig: %s is not there, and no --%s is given", c.Kubeconfig, flagBootstrap)
	}
	return from, reason, nil
}

// ask waits for the node's first certificate, and writes and returns a kubeconfig that names it.
func (c Client) ask(ctx context.Context, pairs *store) (*kubeconfigFile, error) {
	by, err := readKubeconfig(c.Bootstrap)
	if err == nil && by == nil {
		err = fmt.Errorf("%s is not there", c.Bootstrap)
	}
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", flagBootstrap, err)
	}
	if _, err := c.bootstrap(); err != nil {
		return nil, err
	}
	asking, stop := context.WithCancel(ctx)
	defer stop()
	got := wakeup.New()
	manager := &certificate.Config{CertificateStore: first{pairs, got}}
	err = c.renew(asking, manager, func(*tls.Certificate) (*rest.Config, error) { return c.bootstrap() })
	if err != nil {
		return nil, err
	}
	c.Log.Info("asking for the node's client certificate, which somebody has to approve",
		zap.String("server", by.cluster.Server))
	select {
	case <-got:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if err := writeKubeconfig(c.Kubeconfig, by.as(pairs.file)); err != nil {
		return nil, err
	}
	c.Log.Info("the node has a client certificate", zap.String("file", pairs.file))
	return by, nil
}

// first is a store that ignores an existing pair and signals the first new one.
type first struct {
	*store
	got wakeup.Signal
}

// Current implements certificate.Store.
func (first) Current() (*tls.Certificate, error) {
	return nil, new(certificate.NoCertKeyError("a new certificate is wanted"))
}

// Update implements certificate.Store.
func (f first) Update(cert, key []byte) (*tls.Certificate, error) {
	fresh, err := f.store.Update(cert, key)
	if err == nil {
		f.got.Send()
	}
	return fresh, err
}

// bootstrap returns the connection for requesting the first certificate.
func (c Client) bootstrap() (*rest.Config, error) {
	if c.Bootstrap == "" {
		return nil, errors.New("the client certificate has expired, and no --" + flagBootstrap + " is given")
	}
	return c.read(flagBootstrap, c.Bootstrap)
}

// read returns the connection of a kubeconfig.
func (c Client) read(flag, file string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", flag, err)
	}
	return config, nil
}

// renew starts a Manager that requests a certificate for a store whenever the store has no usable one or the next
// one is due, until ctx ends, over the connection that connect returns.
func (c Client) renew(ctx context.Context, config *certificate.Config,
	connect func(current *tls.Certificate) (*rest.Config, error)) error {
	config.Ctx, config.Name = &ctx, "client-certificate"
	config.ClientsetFn = func(current *tls.Certificate) (kubernetes.Interface, error) {
		config, err := connect(current)
		if err != nil {
			return nil, err
		}
		return kubernetes.NewForConfig(client.ForDaemon(config, "nodeagent"))
	}
	config.Template = clientRequest(c.Node)
	config.SignerName = certificatesv1.KubeAPIServerClientKubeletSignerName
	config.GetUsages, config.CertificateRenewFailure = certificate.DefaultKubeletClientGetUsages, c.Failed
	manager, err := certificate.NewManager(config)
	if err != nil {
		return fmt.Errorf("asking for client certificates: %w", err)
	}
	manager.Start()
	return nil
}
