package server

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	genericapiserver "k8s.io/apiserver/pkg/server"

	"keelson.dev/kit/connections"
)

const (
	// retryAfter is when clients of a server that starts ask again, in seconds.
	retryAfter = 1
	// startingDrain bounds how long answers of the starting server may take to be read.
	startingDrain = time.Second
	// startingHeaders bounds how long a client may take to ask.
	startingHeaders = 10 * time.Second
)

// starting answers each request with 503 and what the server waits for, until the server itself serves: otherwise the
// port, which is taken first, would leave clients waiting in their handshakes for as long as the store takes to open.
type starting struct {
	server *http.Server
	lent   *lentListener
	doing  atomic.Value // string
	served chan struct{}
}

// serveStarting begins to answer on listener with the certificate of info, on no more connections than the limits.
func serveStarting(listener *net.TCPListener, info *genericapiserver.SecureServingInfo,
	limits connections.Limits) (*starting, error) {
	certificate, err := tls.X509KeyPair(info.Cert.CurrentCertKeyContent())
	if err != nil {
		return nil, fmt.Errorf("reading the serving certificate: %w", err)
	}
	s := &starting{lent: &lentListener{TCPListener: listener}, served: make(chan struct{})}
	s.doing.Store("about to open its store")
	s.server = &http.Server{
		Handler:           s,
		ErrorLog:          log.New(io.Discard, "", 0),
		ReadHeaderTimeout: startingHeaders,
		TLSConfig: &tls.Config{
			Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12,
			NextProtos: []string{"h2", "http/1.1"},
		},
	}
	go func() {
		defer close(s.served)
		_ = s.server.ServeTLS(connections.Bound(s.lent, limits), "", "")
	}()
	return s, nil
}

// ServeHTTP implements http.Handler.
func (s *starting) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	doing, _ := s.doing.Load().(string)
	status := apierrors.NewServiceUnavailable("the apiserver is starting: " + doing).Status()
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	status.Details = &metav1.StatusDetails{RetryAfterSeconds: retryAfter}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Retry-After", fmt.Sprint(retryAfter))
	w.WriteHeader(http.StatusServiceUnavailable)
	_ = json.NewEncoder(w).Encode(status)
}

// handOver ends the answers and leaves the listener, still open, to the caller.
func (s *starting) handOver() error {
	if err := s.lent.giveBack(); err != nil {
		return err
	}
	<-s.served
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), startingDrain)
		defer cancel()
		if s.server.Shutdown(ctx) != nil {
			_ = s.server.Close()
		}
	}()
	return s.lent.SetDeadline(time.Time{})
}

// lentListener is closed without closing the listener behind it.
type lentListener struct {
	*net.TCPListener
	returned atomic.Bool
}

func (l *lentListener) giveBack() error {
	l.returned.Store(true)
	return l.SetDeadline(time.Unix(1, 0))
}

// Accept implements net.Listener.
func (l *lentListener) Accept() (net.Conn, error) {
	if l.returned.Load() {
		return nil, net.ErrClosed
	}
	conn, err := l.TCPListener.Accept()
	if err != nil && l.returned.Load() {
		return nil, net.ErrClosed
	}
	return conn, err
}

// Close implements net.Listener.
func (l *lentListener) Close() error { return nil }
