package server

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-streaming/pkg/streaming"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"keelson.dev/services/nodeagent/internal/observed"
)

// authority signs certificates for a test.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t}
	template := &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
		Subject: pkix.Name{CommonName: "ca"}}
	pair := a.sign(template)
	a.key = pair.PrivateKey.(*ecdsa.PrivateKey)
	cert, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	a.cert = cert
	return a
}

func (a *authority) sign(template *x509.Certificate) tls.Certificate {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	template.SerialNumber, template.NotBefore, template.NotAfter = big.NewInt(time.Now().UnixNano()),
		time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		a.t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func (a *authority) client(user string, groups ...string) tls.Certificate {
	return a.sign(&x509.Certificate{Subject: pkix.Name{CommonName: user, Organization: groups},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
}

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// node is a Server with a runtime in memory whose sessions are served by the library that real runtimes use.
type node struct {
	*authority
	address    string
	logDir     string
	systemLogs string
	api        *api
	server     *Server

	mu     sync.Mutex
	pod    *corev1.Pod
	state  observed.Pod
	stream streaming.Server
	asked  *cri.ExecRequest
	// known is closed when the node knows all its Pods.
	known chan struct{}
	// stuck is the error of SyncLoop.
	stuck error
	// kept are the addresses kept from Pods; unkept is the error of keeping them. Streams is the runtime's address.
	kept     []string
	unkept   error
	streams  string
	sessions sessions
	// shown is the node's certificate, believed the authorities of clients' certificates.
	shown    *tls.Certificate
	believed *x509.CertPool
}

// sessions counts those that the runtime serves now; more may begin while a test waits for none, which a WaitGroup
// forbids.
type sessions struct {
	mu    sync.Mutex
	open  int
	ended chan struct{}
}

func (s *sessions) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open++
}

func (s *sessions) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open--; s.open == 0 && s.ended != nil {
		close(s.ended)
		s.ended = nil
	}
}

// none returns a channel that is closed as soon as no session is served.
func (s *sessions) none() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	none := make(chan struct{})
	if s.open == 0 {
		close(none)
	} else {
		s.ended = none
	}
	return none
}

func newNode(t *testing.T) *node { return newNodeWith(t, zap.NewNop()) }

func newNodeWith(t *testing.T, log *zap.Logger) *node {
	n := &node{authority: newAuthority(t), logDir: t.TempDir(), systemLogs: t.TempDir(), known: make(chan struct{}),
		api: &api{}}
	n.believed = n.pool()
	close(n.known)
	n.pod = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "u"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app"}}}}
	n.state = observed.Pod{UID: "u", Sandboxes: []observed.Sandbox{{ID: "s1", Ready: true}},
		Containers: []observed.Container{{ID: "c1", Name: "app", State: observed.Running}}}
	n.setState(corev1.ContainerStatus{Name: "app", ContainerID: "containerd://c1",
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}})
	n.startStreaming()
	n.startServer(log)
	return n
}

func (n *node) setState(status corev1.ContainerStatus) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.pod.Status.ContainerStatuses = []corev1.ContainerStatus{status}
}

// startStreaming sets the handler before the server runs: no request may race with setting it.
func (n *node) startStreaming() {
	backend := httptest.NewUnstartedServer(nil)
	config := streaming.DefaultConfig
	config.BaseURL = &url.URL{Scheme: "http", Host: backend.Listener.Addr().String()}
	n.streams = config.BaseURL.Host
	server, err := streaming.NewServer(config, echo{&n.sessions})
	if err != nil {
		n.t.Fatal(err)
	}
	n.stream, backend.Config.Handler = server, server
	backend.Start()
	n.t.Cleanup(backend.Close)
}

// serving returns a certificate for the node's API.
func (n *node) serving() *tls.Certificate {
	pair := n.sign(&x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	return &pair
}

// show sets the node's certificate; nil for none.
func (n *node) show(certificate *tls.Certificate) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.shown = certificate
}

// believe makes the authority the only one that the node trusts.
func (n *node) believe(a *authority) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.believed = a.pool()
}

func (n *node) startServer(log *zap.Logger) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		n.t.Fatal(err)
	}
	n.address = listener.Addr().String()
	n.show(n.serving())
	server := New(Config{
		Certificate: func() (*tls.Certificate, error) {
			n.mu.Lock()
			defer n.mu.Unlock()
			if n.shown == nil {
				return nil, errors.New("there is no certificate yet")
			}
			return n.shown, nil
		},
		ClientCAs: func() *x509.CertPool {
			n.mu.Lock()
			defer n.mu.Unlock()
			return n.believed
		},
		Reviews: n.api.reviewer(),
		Pods:    n,
		Known:   n.known,
		Runtime: n,
		KeepStreams: func(at netip.AddrPort) error {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.kept = append(n.kept, at.String())
			return n.unkept
		},
		LogDir:       n.logDir,
		SystemLogDir: n.systemLogs,
		SyncLoop: func() error {
			n.mu.Lock()
			defer n.mu.Unlock()
			return n.stuck
		},
		Summary: func(_ context.Context, only bool) (*statsapi.Summary, error) {
			summary := &statsapi.Summary{Node: statsapi.NodeStats{NodeName: "n1", CPU: &statsapi.CPUStats{}}}
			if !only {
				summary.Node.Network = &statsapi.NetworkStats{}
			}
			return summary, nil
		},
		Configuration: &kubeletv1beta1.KubeletConfiguration{MaxPods: 7},

		Resource: says("used 1\n"),
		CAdvisor: says("contained 1\n"),
		Probes:   says("probed 1\n"),
		Metrics:  says("up 1\n"),
		Log:      log,
	})
	n.server = server
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, listener) }()
	n.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			n.t.Errorf("the server ended with %v", err)
		}
	})
}

// says returns a handler that answers with a text.
func says(text string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, text) })
}

// Pod implements Pods.
func (n *node) Pod(namespace, name string) (*corev1.Pod, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.pod, namespace == n.pod.Namespace && name == n.pod.Name
}

// Pods implements Pods.
func (n *node) Pods() []*corev1.Pod { return []*corev1.Pod{n.pod} }

// ListPods implements Runtime.
func (n *node) ListPods(context.Context) ([]observed.Pod, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return []observed.Pod{n.state}, nil
}

// PodState implements Runtime.
func (n *node) PodState(context.Context, string) (observed.Pod, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.state, nil
}

// ExecURL implements Runtime.
func (n *node) ExecURL(_ context.Context, request *cri.ExecRequest) (string, error) {
	n.mu.Lock()
	n.asked = request
	n.mu.Unlock()
	answer, err := n.stream.GetExec(request)
	return answer.GetUrl(), err
}

// AttachURL implements Runtime.
func (n *node) AttachURL(_ context.Context, request *cri.AttachRequest) (string, error) {
	answer, err := n.stream.GetAttach(request)
	return answer.GetUrl(), err
}

// PortForwardURL implements Runtime.
func (n *node) PortForwardURL(_ context.Context, request *cri.PortForwardRequest) (string, error) {
	answer, err := n.stream.GetPortForward(request)
	return answer.GetUrl(), err
}

// echo is a runtime whose processes repeat what they read, "bye" included.
type echo struct{ sessions *sessions }

func (e echo) Exec(_ context.Context, id string, command []string, in io.Reader, out, _ io.WriteCloser, _ bool,
	_ <-chan remotecommand.TerminalSize) error {
	e.sessions.begin()
	defer e.sessions.end()
	if command[0] == "fail" {
		return errors.New("no such program")
	}
	fmt.Fprint(out, id+":"+command[0]+":")
	if in == nil {
		return nil
	}
	_, err := io.Copy(out, in)
	return err
}

func (e echo) Attach(ctx context.Context, id string, in io.Reader, out, errOut io.WriteCloser, tty bool,
	resize <-chan remotecommand.TerminalSize) error {
	return e.Exec(ctx, id, []string{"attached"}, in, out, errOut, tty, resize)
}

func (e echo) PortForward(_ context.Context, sandbox string, port int32, stream io.ReadWriteCloser) error {
	e.sessions.begin()
	defer e.sessions.end()
	defer stream.Close()
	data := make([]byte, 4)
	if _, err := io.ReadFull(stream, data); err != nil {
		return nil //nolint:nilerr // the client went away, which is the runtime's business here
	}
	_, err := io.WriteString(stream, sandbox+":"+string(data))
	return err
}

// config returns a client configuration with the certificate.
func (n *node) config(certificate tls.Certificate) *rest.Config {
	key, err := x509.MarshalECPrivateKey(certificate.PrivateKey.(*ecdsa.PrivateKey))
	if err != nil {
		n.t.Fatal(err)
	}
	return &rest.Config{Host: "https://" + n.address, TLSClientConfig: rest.TLSClientConfig{
		CAData:   pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: n.cert.Raw}),
		CertData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Certificate[0]}),
		KeyData:  pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: key}),
	}}
}

// get requests a path as the API server does and returns status and body.
func (n *node) get(path string, certificates ...tls.Certificate) (int, string, error) {
	if len(certificates) == 0 {
		certificates = []tls.Certificate{n.client("system:keelson:apiserver")}
	}
	return n.ask(http.MethodGet, path, nil, certificates...)
}

// ask sends a request with headers, for example with a token, and returns status and body.
func (n *node) ask(method, path string, header http.Header, certificates ...tls.Certificate) (int, string, error) {
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: n.pool(), Certificates: certificates}}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(n.t.Context(), method, "https://"+n.address+path, http.NoBody)
	if err != nil {
		n.t.Fatal(err)
	}
	request.Header = header
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	response, err := client.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if to := response.Header.Get("Location"); to != "" {
		body = append(body, "-> "+to...)
	}
	return response.StatusCode, string(body), err
}

// withToken returns the headers of a client with the token.
func withToken(token string) http.Header { return http.Header{"Authorization": {"Bearer " + token}} }
