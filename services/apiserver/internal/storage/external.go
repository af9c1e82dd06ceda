package storage

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/pflag"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"keelson.dev/kit/daemon"
)

const (
	dialTimeout      = 20 * time.Second
	keepAliveTime    = 30 * time.Second
	keepAliveTimeout = 10 * time.Second
)

// Cluster says how to reach an etcd cluster.
type Cluster struct {
	// Servers are the client URLs of the members.
	Servers []string
	// CertFile, KeyFile and CAFile are the client's TLS files; all empty: no TLS.
	CertFile, KeyFile, CAFile string
}

// AddFlags binds the flags.
func (c *Cluster) AddFlags(fs *pflag.FlagSet) {
	fs.StringSliceVar(&c.Servers, "etcd-servers", c.Servers,
		"client URLs of an etcd cluster to use in place of the embedded store")
	fs.StringVar(&c.CertFile, "etcd-certfile", c.CertFile, "PEM client certificate for --etcd-servers")
	fs.StringVar(&c.KeyFile, "etcd-keyfile", c.KeyFile, "PEM key of --etcd-certfile")
	fs.StringVar(&c.CAFile, "etcd-cafile", c.CAFile, "PEM bundle that verifies --etcd-servers")
}

// Dial connects to the cluster and waits until a member answers.
func (c Cluster) Dial(ctx context.Context, log *zap.Logger) (*kubernetes.Client, error) {
	config := clientConfig(ctx, log, c.Servers...)
	tls, err := c.tls()
	if err != nil {
		return nil, err
	}
	config.TLS = tls
	client, err := kubernetes.New(config)
	if err != nil {
		return nil, daemon.UsageError(fmt.Errorf("--etcd-servers: %w", err))
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	if _, err := client.KV.Get(ctx, healthKey); err != nil {
		_ = client.Close()
		return nil, daemon.UsageError(fmt.Errorf("--etcd-servers: no answer from %v: %w", c.Servers, err))
	}
	return client, nil
}

// Open is Dial for an apiserver: a cluster that holds only a part of a store, or whose store was moved away, is an
// error.
func (c Cluster) Open(ctx context.Context, log *zap.Logger) (*kubernetes.Client, error) {
	client, err := c.Dial(ctx, log)
	if err != nil {
		return nil, err
	}
	mark, err := ReadMark(ctx, client.Client)
	if err == nil {
		err = mark.refusal(c.Servers)
	}
	if err != nil {
		_ = client.Close()
		return nil, err
	}
	return client, nil
}

func clientConfig(ctx context.Context, log *zap.Logger, servers ...string) clientv3.Config {
	return clientv3.Config{
		Context:              context.WithoutCancel(ctx),
		Endpoints:            servers,
		DialTimeout:          dialTimeout,
		DialKeepAliveTime:    keepAliveTime,
		DialKeepAliveTimeout: keepAliveTimeout,
		Logger:               warnings(log.Named("etcd-client")),
	}
}

// warnings lets only warnings and errors of log through.
func warnings(log *zap.Logger) *zap.Logger {
	if !log.Core().Enabled(zapcore.WarnLevel) {
		return log
	}
	return log.WithOptions(zap.IncreaseLevel(zapcore.WarnLevel))
}
