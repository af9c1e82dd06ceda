package app

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"keelson.dev/kit/daemon"
	"keelson.dev/services/nodeagent/internal/nodecertificates"
)

// connect waits until the node has a client certificate, if the agent maintains it, and connects with it. failed
// counts failed requests for one. It also returns nil when ctx ends before.
func (c *Config) connect(ctx context.Context, failed prometheus.Counter) error {
	if !c.Certificates.Own() {
		return nil
	}
	var connected atomic.Bool
	c.Ready.Add("client-certificate", func() error {
		if !connected.Load() {
			return errors.New("the node waits for its client certificate: its request has to be approved and signed")
		}
		return nil
	})
	own := c.Certificates
	own.Dir = c.certificatesDir()
	connection, err := nodecertificates.Client{Settings: own, Node: c.NodeName, Kubeconfig: c.Kubeconfig,
		Log: c.Log, Failed: failed}.Connect(ctx)
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return daemon.UsageError(err)
	}
	c.REST = connection
	connected.Store(true)
	return nil
}

// certificatesDir returns the folder of the certificates that the node requests.
func (c *Config) certificatesDir() string {
	return cmp.Or(c.Certificates.Dir, filepath.Join(c.RootDir, "pki"))
}
