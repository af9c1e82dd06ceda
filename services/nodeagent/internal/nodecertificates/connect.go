// Package nodecertificates asks the API for the node's certificates (CertificateSigningRequests, certificates.k8s.io)
// and renews them before they expire, as the kubelet does: the first client certificate by whatever a bootstrap
// kubeconfig allows, the later ones as the node itself (connect.go), and the serving certificate of the node API for
// the Node's addresses (serving.go). Package csr of client-go makes the requests, and its Manager knows when; which
// pair an agent starts with is decided here (decide.go), and pairs are kept in one file each (store.go).
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

// clientFile is the name of the client certificate's file in the folder, that of the kubelet.
const clientFile = "kubelet-client-current.pem"

// Client is the node's client certificate.
type Client struct {
	Settings
	// Node is the node's name, Kubeconfig the file by which the agent speaks to the API.
	Node, Kubeconfig string
	Log              *zap.Logger
	// Failed counts the requests that came to nothing; it may be nil.
	Failed certificate.Counter
}

// noticed is how soon after a renewal the connections under the old certificate are closed: the apiserver believes it
// until it expires, and on an open connection no later. client-go looks at the files of a connection's certificate so
// often; its own five minutes are longer than what is left of a certificate of the shortest time that there is.
const noticed = 10 * time.Second

// noticeSoon is for the connections that are made afterwards.
var noticeSoon = sync.OnceFunc(func() { transport.CertCallbackRefreshDuration = noticed })

// Connect returns the agent's connection to the API once the node has a client certificate, for which it waits until
// somebody has approved it, and renews that until ctx ends if that is wanted.
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

// keep returns the connection by the pair of the store, and has that renewed if that is wanted.
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

// source says where the pair comes from.
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

// ask waits for the node's first certificate, and writes the kubeconfig that names it, which it returns.
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

// first is a store from which nothing is taken over, and that tells of the first pair that comes.
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

// bootstrap is the connection by which the first certificate is asked for.
func (c Client) bootstrap() (*rest.Config, error) {
	if c.Bootstrap == "" {
		return nil, errors.New("the client certificate has expired, and no --" + flagBootstrap + " is given")
	}
	return c.read(flagBootstrap, c.Bootstrap)
}

// read is the connection of a kubeconfig.
func (c Client) read(flag, file string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", flag, err)
	}
	return config, nil
}

// renew has a Manager of a store ask for a certificate whenever there is none of use or it is time for the next one,
// until ctx ends, by the connection that connect returns.
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
