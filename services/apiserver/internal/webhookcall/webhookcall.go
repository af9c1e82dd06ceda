// Package webhookcall bounds what webhooks may do to the apiserver that calls them: an answer has an end, leads nowhere
// else, and comes from an address that requests may be handed on to.
package webhookcall

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"syscall"
	"time"

	apiserverwebhook "k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/rest"

	"keelson.dev/services/apiserver/internal/followedfile"
)

const (
	// MaxAnswer is how many bytes an answer may have. A patch that replaces the largest object has 4 MiB.
	MaxAnswer = 5 << 20
	// MaxConversion is how many an answer may have that converts all objects of a page of a list.
	MaxConversion = 64 << 20
	// maxReview is how many an answer may have of who is asked about tokens or rights.
	maxReview = 1 << 20
	// small is how much of an answer is taken of whoever answers, largeAtOnce how many webhooks may be read from at a
	// time whose answers are longer.
	small       = 256 << 10
	largeAtOnce = 8

	dialTimeout = 10 * time.Second
	keepAlive   = 30 * time.Second
)

// Config says how the Services of webhooks are reached, and what is taken of webhooks.
type Config struct {
	// MaxAnswer is how many bytes an answer may have.
	MaxAnswer int
	// CheckAddress refuses addresses, IP:PORT, to which nothing is sent for a Service: who may write its endpoints is
	// not who may write webhooks. Dial, if set, connects in place of that.
	CheckAddress func(address string) error
	Dial         func(ctx context.Context, network, address string) (net.Conn, error)
}

// Bounded returns the connections that identify chooses, with bounds.
func Bounded(identify apiserverwebhook.AuthenticationInfoResolverWrapper, c Config,
) apiserverwebhook.AuthenticationInfoResolverWrapper {
	large := make(chan struct{}, largeAtOnce)
	bound := func(config *rest.Config, err error) (*rest.Config, error) {
		if err != nil {
			return nil, err
		}
		return limited(config, large, c.MaxAnswer), nil
	}
	return func(resolver apiserverwebhook.AuthenticationInfoResolver) apiserverwebhook.AuthenticationInfoResolver {
		resolver = identify(resolver)
		return &apiserverwebhook.AuthenticationInfoResolverDelegator{
			ClientConfigForFunc: func(host string) (*rest.Config, error) {
				return bound(resolver.ClientConfigFor(host))
			},
			ClientConfigForServiceFunc: func(name, namespace string, port int) (*rest.Config, error) {
				config, err := bound(resolver.ClientConfigForService(name, namespace, port))
				// A way that identify has chosen stays.
				if err == nil && config.Dial == nil {
					config.Dial = c.dial()
				}
				return config, err
			},
		}
	}
}

// OfReviews is how a webhook is reached that is asked about tokens or rights, as a kubeconfig says: its answers are
// bounded, and no redirect is followed. The error is one line with the path.
func OfReviews(kubeconfig string) (*rest.Config, error) {
	config, err := apiserverwebhook.LoadKubeconfig(kubeconfig, nil)
	if err != nil {
		return nil, followedfile.Wrong(kubeconfig, err)
	}
	return limited(config, make(chan struct{}, largeAtOnce), maxReview), nil
}

func limited(config *rest.Config, large chan struct{}, most int) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &bounded{next: next, large: large, most: most}
	})
	return config
}

// Ending takes of each answer of next so many bytes at most, from wherever it leads to.
func Ending(next http.RoundTripper, maxAnswer int) http.RoundTripper {
	return &bounded{next: next, large: make(chan struct{}, largeAtOnce), most: maxAnswer, leads: true}
}

func (c Config) dial() func(context.Context, string, string) (net.Conn, error) {
	if c.Dial != nil {
		return c.Dial
	}
	dialer := &net.Dialer{Timeout: dialTimeout, KeepAlive: keepAlive,
		Control: func(_, address string, _ syscall.RawConn) error { return c.CheckAddress(address) }}
	return dialer.DialContext
}

// bounded takes answers that have an end.
type bounded struct {
	next  http.RoundTripper
	large chan struct{}
	most  int
	// leads lets an answer lead elsewhere.
	leads bool
}

// RoundTrip implements http.RoundTripper.
func (b *bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := b.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	switch {
	case !b.leads && response.StatusCode >= http.StatusMultipleChoices && response.StatusCode < http.StatusBadRequest:
		_ = response.Body.Close()
		return nil, fmt.Errorf("it answers %s, and no redirect is followed", response.Status)
	case response.ContentLength > int64(b.most):
		_ = response.Body.Close()
		return nil, fmt.Errorf("its answer has %d bytes, more than %d", response.ContentLength, b.most)
	}
	response.Body = &answer{ReadCloser: response.Body, ctx: r.Context(), large: b.large, most: b.most}
	return response, nil
}

// WrappedRoundTripper lets client-go find what is wrapped.
func (b *bounded) WrappedRoundTripper() http.RoundTripper { return b.next }

// answer is a body that is read up to its bound.
type answer struct {
	io.ReadCloser
	ctx   context.Context //nolint:containedctx // A body is read by who knows no context.
	large chan struct{}
	// read is how much of it was taken, most how much it may be.
	read, most int
	// holds says that it is one of the large ones.
	holds bool
}

// Read implements io.Reader.
func (a *answer) Read(p []byte) (int, error) {
	if a.read >= small && !a.holds {
		select {
		case a.large <- struct{}{}:
			a.holds = true
		case <-a.ctx.Done():
			return 0, context.Cause(a.ctx)
		}
	}
	n, err := a.ReadCloser.Read(p)
	if a.read += n; a.read > a.most {
		return 0, fmt.Errorf("its answer has more than %d bytes", a.most)
	}
	return n, err
}

// Close implements io.Closer.
func (a *answer) Close() error {
	if a.holds {
		<-a.large
		a.holds = false
	}
	return a.ReadCloser.Close()
}
