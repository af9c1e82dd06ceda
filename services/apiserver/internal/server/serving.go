package server

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	genericapiserver "k8s.io/apiserver/pkg/server"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	restclient "k8s.io/client-go/rest"
	netutils "k8s.io/utils/net"

	"keelson.dev/kit/connections"
	"keelson.dev/kit/cork"
	"keelson.dev/kit/daemon"
)

const (
	// streamsPerConnection lets one client hold many watches on one connection.
	streamsPerConnection = 1000
	// keepAlive finds clients that went away without a word.
	keepAlive = 3 * time.Minute
)

// listen binds the address, so that a port in use is told before anything starts.
func (o *Options) listen(ctx context.Context) (net.Listener, error) {
	if o.Listener != nil {
		return o.Listener, nil
	}
	address := net.JoinHostPort(o.BindAddress, strconv.Itoa(o.SecurePort))
	config := net.ListenConfig{KeepAlive: keepAlive}
	listener, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, daemon.UsageError(fmt.Errorf("--secure-port: %w", err))
	}
	return listener, nil
}

// serve fills in HTTPS serving and the loopback connection.
func (o *Options) serve(config *genericapiserver.Config, listener net.Listener) error {
	serving := genericoptions.NewSecureServingOptions()
	o.accepted = connections.Bound(listener, o.Connections)
	serving.Listener = cork.Listener(o.accepted)
	serving.HTTP2MaxStreamsPerConnection = streamsPerConnection
	serving.ServerCert.CertKey = genericoptions.CertKey{CertFile: o.TLSCertFile, KeyFile: o.TLSPrivateKeyFile}
	if o.TLSCertFile == "" {
		// No directory: the certificate stays in memory.
		serving.ServerCert.CertDirectory = ""
		if err := serving.MaybeDefaultWithSelfSignedCerts("localhost", nil,
			[]net.IP{netutils.ParseIPSloppy("127.0.0.1")}); err != nil {
			return fmt.Errorf("making a serving certificate: %w", err)
		}
	}
	if err := serving.WithLoopback().ApplyTo(&config.SecureServing, &config.LoopbackClientConfig); err != nil {
		return daemon.UsageError(fmt.Errorf("--tls-cert-file: %w", err))
	}
	config.LoopbackClientConfig.QPS = -1
	config.LoopbackClientConfig.ContentType = "application/vnd.kubernetes.protobuf"
	config.LoopbackClientConfig.DisableCompression = true
	config.LoopbackClientConfig.WarningHandler = restclient.NoWarnings{}
	config.PublicAddress = o.advertised(listener)
	return nil
}

// advertised is the address that Pods reach the server at. A loopback address is
// none; nil means that there is no other.
func (o *Options) advertised(listener net.Listener) net.IP {
	if o.AdvertiseAddress != "" {
		return netutils.ParseIPSloppy(o.AdvertiseAddress)
	}
	if address, ok := listener.Addr().(*net.TCPAddr); ok && !address.IP.IsUnspecified() && !address.IP.IsLoopback() {
		return address.IP
	}
	if ip, err := utilnet.ChooseHostInterface(); err == nil && !ip.IsLoopback() {
		return ip
	}
	return nil
}
