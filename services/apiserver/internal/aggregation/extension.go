package aggregation

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"syscall"
	"time"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/transport"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

const (
	// checkTimeout is how long a server may take to say what a version has.
	checkTimeout = 5 * time.Second
	idleTimeout  = 90 * time.Second
)

// itself is as whom the apiserver asks; authorization at the other end lets it pass without asking back.
var itself user.Info = &user.DefaultInfo{Name: "system:kube-aggregator", Groups: []string{user.SystemPrivilegedGroup}}

// extension is the server behind an APIService. It does not change: another spec makes another one.
type extension struct {
	name string
	uid  types.UID
	spec apiregistration.APIServiceSpec
	// local says that requests are not handed on.
	local bool
	// transport is nil where spec does not allow one, for the reason in unusable.
	transport *http.Transport
	unusable  error
	// reading is held by who reads one of its documents: one at a time.
	reading chan struct{}
}

func newExtension(a *apiregistration.APIService, local bool, c Config) *extension {
	e := &extension{name: a.Name, uid: a.UID, spec: *a.Spec.DeepCopy(), local: local || a.Spec.Service == nil,
		reading: make(chan struct{}, 1)}
	if !e.local {
		e.transport, e.unusable = newTransport(&e.spec, c)
	}
	return e
}

func (e *extension) version() schema.GroupVersion {
	return schema.GroupVersion{Group: e.spec.Group, Version: e.spec.Version}
}

// newTransport reaches the endpoints of the Service, which show a certificate in its name.
func newTransport(spec *apiregistration.APIServiceSpec, c Config) (*http.Transport, error) {
	config := &tls.Config{
		MinVersion:           tls.VersionTLS12,
		ServerName:           serverName(spec.Service),
		InsecureSkipVerify:   spec.InsecureSkipTLSVerify, //nolint:gosec // The APIService says so.
		GetClientCertificate: c.Identity.Certificate,
	}
	if len(spec.CABundle) > 0 {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(spec.CABundle) {
			return nil, errors.New("spec.caBundle holds no PEM certificate")
		}
	}
	dial := c.Dial
	if dial == nil {
		dialer := &net.Dialer{Timeout: checkTimeout, Control: func(_, address string, _ syscall.RawConn) error {
			return c.CheckAddress(address)
		}}
		dial = dialer.DialContext
	}
	t := utilnet.SetTransportDefaults(&http.Transport{
		DialContext: dial, TLSClientConfig: config, TLSHandshakeTimeout: checkTimeout, IdleConnTimeout: idleTimeout,
		MaxIdleConnsPerHost: 8,
		Proxy:               func(*http.Request) (*url.URL, error) { return nil, nil },
	})
	return t, nil
}

// serverName is the name in the certificates of a Service's endpoints.
func serverName(s *apiregistration.ServiceReference) string {
	return s.Name + "." + s.Namespace + ".svc"
}

// close ends idle connections.
func (e *extension) close() {
	if e.transport != nil {
		e.transport.CloseIdleConnections()
	}
}

// target is an endpoint to ask, or why there is none.
func (e *extension) target(ctx context.Context, objects Objects) (string, Verdict) {
	if e.unusable != nil {
		return "", unavailable("FailedDiscoveryCheck", e.unusable.Error())
	}
	return Target(ctx, objects, e.spec.Service)
}

// Target is an endpoint of the Service, HOST:PORT, that takes requests, or why there is none.
func Target(ctx context.Context, objects Objects, ref *apiregistration.ServiceReference) (string, Verdict) {
	service, err := objects.Service(ctx, ref.Namespace, ref.Name)
	if err != nil {
		return "", Verdict{apiregistration.ConditionUnknown, "ServiceAccessError", err.Error()}
	}
	parts, err := objects.Slices(ctx, ref.Namespace, ref.Name)
	if err != nil {
		return "", Verdict{apiregistration.ConditionUnknown, "EndpointsAccessError", err.Error()}
	}
	targets, verdict := decideTargets(ref, service, parts)
	if len(targets) == 0 {
		return "", verdict
	}
	return targets[rand.IntN(len(targets))], Verdict{} //nolint:gosec // Any endpoint will do.
}

// ask asks an endpoint what the version has.
func (e *extension) ask(ctx context.Context, host string) ([]apidiscoveryv2.APIResourceDiscovery, error) {
	got, err := e.fetch(ctx, &url.URL{Host: host, Path: "/apis/" + e.version().String()}, itself,
		http.Header{"Accept": {"application/json"}})
	if err != nil {
		return nil, err
	}
	return decideAnswer(e.version(), got.code, got.body)
}

// reply is what a server answered. body has at most one byte more than maxAnswer.
type reply struct {
	code   int
	header http.Header
	body   []byte
}

// fetch asks an endpoint on behalf of a user. It reads an answer whole or not at all, and follows no redirect.
func (e *extension) fetch(ctx context.Context, at *url.URL, who user.Info, header http.Header) (*reply, error) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	location := url.URL{Scheme: "https", Host: at.Host, Path: at.Path, RawQuery: at.RawQuery}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, location.String(), http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("asking at %s: %w", at.Path, err)
	}
	r.Host = serverName(e.spec.Service)
	maps.Copy(r.Header, header)
	r.Header.Set("Via", via)
	transport.SetAuthProxyHeaders(r, who.GetName(), who.GetUID(), who.GetGroups(), who.GetExtra())
	response, err := e.transport.RoundTrip(r)
	if err != nil {
		return nil, stable(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	if err == nil {
		err = ctx.Err() // A server that sees the end of the request may end its answer, too.
	}
	if err != nil {
		return nil, fmt.Errorf("reading the answer: %w", stable(err))
	}
	return &reply{response.StatusCode, response.Header, body}, nil
}

// stable is the error without addresses and ports, which differ each time: a condition says it.
func stable(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		return fmt.Errorf("%s: %w", op.Op, op.Err)
	}
	return err
}
