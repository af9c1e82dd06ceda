package nodecertificates

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// life is how long a serving certificate of a test lasts: the node requests the next one after 70 to 90 percent of
// it.
const life = 10 * time.Minute

// After an error the library waits by the time of the last one, which may be from another bubble's clock.
func init() { utilruntime.ErrorHandlers = nil }

// served is a node whose requests a test may approve.
type served struct {
	*testing.T
	serving *Serving
	// mesh signs; authorities are those that the node trusts for the apiserver.
	mesh        *authority
	authorities []*x509.Certificate
	client      *fake.Clientset
	told        *observer.ObservedLogs

	mu        sync.Mutex // guards all fields below
	addresses []corev1.NodeAddress
	// asked is the number of requests, pending the newest one.
	asked   int
	pending *certificatesv1.CertificateSigningRequest
	// failed is the number of failed requests.
	failed int
}

// Inc counts a failed request.
func (n *served) Inc() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.failed++
}

func newServed(t *testing.T, dir string, given func() *tls.Certificate) *served {
	t.Helper()
	core, told := observer.New(zap.InfoLevel)
	n := &served{T: t, mesh: newAuthority(t), client: fake.NewClientset(), told: told}
	n.client.PrependReactor("create", "certificatesigningrequests", n.ask)
	n.restart(dir, given, zap.New(core))
	return n
}

// restart replaces the node's agent.
func (n *served) restart(dir string, given func() *tls.Certificate, log *zap.Logger) {
	n.Helper()
	var err error
	n.serving, err = NewServing(ServingConfig{Dir: dir, Node: "n", Client: n.client, Given: given, Log: log,
		Failed: n, Authorities: n.authorities,
		Addresses: func() []corev1.NodeAddress {
			n.mu.Lock()
			defer n.mu.Unlock()
			return n.addresses
		}})
	if err != nil {
		n.Fatal(err)
	}
}

// run makes the node request certificates until stop is called.
func (n *served) run() (stop func()) {
	ctx, cancel := context.WithCancel(n.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); n.serving.Run(ctx) }()
	return func() {
		cancel()
		<-ended
	}
}

// ask stores the request as the API's only one: the client in memory watches all.
func (n *served) ask(action clienttesting.Action) (bool, runtime.Object, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	request := action.(clienttesting.CreateAction).GetObject().(*certificatesv1.CertificateSigningRequest).DeepCopy()
	resource := action.GetResource()
	if n.pending != nil {
		if err := n.client.Tracker().Delete(resource, "", n.pending.Name); err != nil {
			return true, nil, err
		}
	}
	n.asked++
	request.Name = fmt.Sprintf("csr-%d", n.asked)
	request.UID = types.UID(request.Name)
	n.pending = request
	return true, request, n.client.Tracker().Create(resource, request, "")
}

// move changes the Node's addresses.
func (n *served) move(addresses string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.addresses = addressesOf(addresses)
}

// request returns the newest request, which must have that number and these names and addresses.
func (n *served) request(number int, want string) *certificatesv1.CertificateSigningRequest {
	n.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.asked != number {
		n.Fatalf("the node has asked %d times, want %d", n.asked, number)
	}
	if number == 0 {
		return nil
	}
	if n.pending.Spec.SignerName != "kubernetes.io/kubelet-serving" || !slices.Equal(n.pending.Spec.Usages,
		[]certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth}) {
		n.Errorf("it asks for %+v", n.pending.Spec)
	}
	request := n.parse(n.pending)
	if got := fmt.Sprint(request.DNSNames, " ", request.IPAddresses); got != want {
		n.Errorf("it asks for %s, want %s", got, want)
	}
	return n.pending
}

func (n *served) parse(r *certificatesv1.CertificateSigningRequest) *x509.CertificateRequest {
	n.Helper()
	block, _ := pem.Decode(r.Spec.Request)
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		n.Fatal(err)
	}
	return request
}

// approve signs the request and returns the certificate.
func (n *served) approve(r *certificatesv1.CertificateSigningRequest) *x509.Certificate {
	n.Helper()
	request := n.parse(r)
	template := &x509.Certificate{SerialNumber: big.NewInt(time.Now().Unix()), Subject: request.Subject,
		DNSNames: request.DNSNames, IPAddresses: request.IPAddresses, NotBefore: time.Now(),
		NotAfter: time.Now().Add(life), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	der, err := x509.CreateCertificate(nil, template, n.mesh.certificate, request.PublicKey, n.mesh.key)
	if err != nil {
		n.Fatal(err)
	}
	signed := r.DeepCopy()
	signed.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{
		{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue}}
	signed.Status.Certificate = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if _, err := n.client.CertificatesV1().CertificateSigningRequests().UpdateStatus(n.Context(), signed,
		metav1.UpdateOptions{}); err != nil {
		n.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		n.Fatal(err)
	}
	return certificate
}

// shows fails the test unless a client of the mesh that connects to the name gets the certificate; nil expects
// none.
func (n *served) shows(name string, want *x509.Certificate) {
	n.Helper()
	near, far := net.Pipe()
	defer near.Close()
	ended := make(chan error, 1)
	go func() {
		defer far.Close()
		ended <- tls.Server(far, &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return n.serving.Certificate()
		}}).Handshake()
	}()
	roots := x509.NewCertPool()
	roots.AddCert(n.mesh.certificate)
	client := tls.Client(near, &tls.Config{RootCAs: roots, ServerName: name})
	err := client.Handshake()
	if err == nil {
		_, err = client.Read(nil)
	}
	switch said := <-ended; {
	case want == nil && (err == nil || !errors.Is(said, errNoServing)):
		n.Errorf("a client is told %v, the node says %v", err, said)
	case want != nil && (err != nil || !client.ConnectionState().PeerCertificates[0].Equal(want)):
		n.Errorf("a client is shown another certificate than the one until %v: %v, %v", want.NotAfter, err, said)
	}
}

// pass lets time pass.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// A node requests its serving certificate once it has addresses, shows it once it is signed, requests the next one
// in time and another one when it has an address that the certificate lacks. It shows the previous one until the
// new one arrives, and until it expires.
func TestServing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		n := newServed(t, dir, nil)
		stop := n.run()
		pass(time.Minute)
		n.request(0, "")
		n.shows("192.0.2.1", nil)

		n.move("InternalIP=192.0.2.1 Hostname=n")
		pass(5 * time.Second)
		first := n.request(1, "[n] [192.0.2.1]")
		n.shows("192.0.2.1", nil)
		certificate := n.approve(first)
		pass(time.Second)
		n.shows("192.0.2.1", certificate)
		n.shows("n", certificate)
		if told := n.told.FilterMessage("the node has a new serving certificate").Len(); told != 1 {
			t.Errorf("it tells %v", n.told.All())
		}

		pass(life*7/10 - 2*time.Second)
		n.request(1, "[n] [192.0.2.1]")
		pass(life*2/10 + 4*time.Second)
		second := n.request(2, "[n] [192.0.2.1]")
		n.shows("n", certificate)
		certificate = n.approve(second)
		pass(time.Second)
		n.shows("n", certificate)

		n.move("InternalIP=192.0.2.1 Hostname=n ExternalIP=203.0.113.1")
		pass(5 * time.Second)
		third := n.request(3, "[n] [192.0.2.1 203.0.113.1]")
		n.shows("n", certificate)
		n.move("InternalIP=192.0.2.2 Hostname=n") // while the third is not yet decided
		pass(10 * time.Second)
		fourth := n.request(4, "[n] [192.0.2.2]")
		if third.Name == fourth.Name {
			t.Error("the request is the same")
		}
		certificate = n.approve(fourth)
		pass(time.Second)
		n.shows("192.0.2.2", certificate)

		// The next agent continues with it, and requests the next one in time.
		stop()
		n.restart(dir, nil, zap.NewNop())
		stop = n.run()
		pass(life * 6 / 10)
		n.request(4, "[n] [192.0.2.2]")
		n.shows("192.0.2.2", certificate)
		pass(life*4/10 - 30*time.Second)
		n.request(5, "[n] [192.0.2.2]")
		n.shows("192.0.2.2", certificate)
		pass(30 * time.Second)
		n.shows("192.0.2.2", nil)
		stop()
	})
}

// The given certificate is shown until the node has a signed one, and again when that has expired.
func TestServingWhatIsGiven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newServed(t, t.TempDir(), nil)
		pair, err := tls.X509KeyPair(n.mesh.sign(t, &x509.Certificate{SerialNumber: big.NewInt(3),
			DNSNames: []string{"n"}, NotAfter: time.Now().Add(time.Hour),
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}))
		if err != nil {
			t.Fatal(err)
		}
		n.restart(t.TempDir(), func() *tls.Certificate { return &pair }, zap.NewNop())
		stop := n.run()
		n.move("InternalIP=192.0.2.1 Hostname=n")
		pass(5 * time.Second)
		n.shows("n", pair.Leaf)
		certificate := n.approve(n.request(1, "[n] [192.0.2.1]"))
		pass(time.Second)
		n.shows("n", certificate)
		pass(life)
		n.shows("n", pair.Leaf)
		stop()
	})
}

// Once the mesh has another authority, the next agent requests a certificate of it at once, and shows the previous
// one until the request is approved. While the new authority does not sign, and after that, it requests nothing.
func TestServingOfANewAuthority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		n := newServed(t, dir, nil)
		n.move("InternalIP=192.0.2.1 Hostname=n")
		stop := n.run()
		defer func() {
			stop()
			pass(life) // a Manager that has ended still waits for its time
		}()
		pass(5 * time.Second)
		certificate := n.approve(n.request(1, "[n] [192.0.2.1]"))
		pass(time.Second)
		before, next := n.mesh, newAuthority(t)
		restart := func(bundle ...*authority) {
			stop()
			n.authorities = bundleOf(bundle...)
			n.restart(dir, nil, zap.NewNop())
			n.move("") // it does not know its addresses at once
			stop = n.run()
			pass(5 * time.Second)
			n.move("InternalIP=192.0.2.1 Hostname=n")
			pass(5 * time.Second)
		}
		restart(before, next)
		n.request(1, "[n] [192.0.2.1]")
		restart(next, before)
		n.request(2, "[n] [192.0.2.1]")
		n.shows("n", certificate)
		restart(next, before) // an agent killed before it has the certificate requests it again
		asked := n.request(3, "[n] [192.0.2.1]")
		n.shows("n", certificate)
		n.mesh = next
		certificate = n.approve(asked)
		pass(time.Second)
		n.shows("n", certificate)
		restart(next, before)
		restart(next)
		n.request(3, "[n] [192.0.2.1]")
		n.shows("n", certificate)
	})
}

// bundleOf returns the certificates of authorities.
func bundleOf(authorities ...*authority) (bundle []*x509.Certificate) {
	for _, a := range authorities {
		bundle = append(bundle, a.certificate)
	}
	return bundle
}

// Only failed requests are counted.
func TestServingFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newServed(t, t.TempDir(), nil)
		var refuses atomic.Bool
		refuses.Store(true)
		n.client.PrependReactor("create", "certificatesigningrequests", func(clienttesting.Action) (bool,
			runtime.Object, error) {
			return refuses.Load(), nil, errors.New("no")
		})
		stop := n.run()
		n.move("InternalIP=192.0.2.1 Hostname=n")
		pass(time.Second)
		failed := func() int {
			n.mu.Lock()
			defer n.mu.Unlock()
			return n.failed
		}
		before := failed()
		if before == 0 {
			t.Error("a request that was refused was not counted")
		}
		refuses.Store(false)
		pass(time.Minute)
		before = failed()
		certificate := n.approve(n.request(1, "[n] [192.0.2.1]"))
		pass(time.Second)
		n.shows("n", certificate)
		if after := failed(); after != before {
			t.Errorf("%d failures were counted with the certificate", after-before)
		}
		stop()
	})
}

// A certificate that the node cannot use, because it is for another node or for clients, is refused, regardless of
// its signer.
func TestServingStore(t *testing.T) {
	mesh := newAuthority(t)
	dir := t.TempDir()
	core, told := observer.New(zap.InfoLevel)
	pairs, err := openStore(dir, servingFile, "n", x509.ExtKeyUsageServerAuth)
	if err != nil {
		t.Fatal(err)
	}
	s := telling{pairs, zap.New(core)}
	good, goodKey := mesh.sign(t, with(lasting(), x509.ExtKeyUsageServerAuth))
	if _, err := s.Update(good, goodKey); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]*x509.Certificate{
		"for clients":         lasting(),
		"of another node":     with(leaf("m", time.Now(), time.Now().Add(time.Hour)), x509.ExtKeyUsageServerAuth),
		"of somebody":         with(named(lasting(), "ann"), x509.ExtKeyUsageServerAuth),
		"of another group":    with(grouped(lasting(), "nodes"), x509.ExtKeyUsageServerAuth),
		"that is over by now": with(leaf("n", time.Now().Add(-time.Hour), time.Now()), x509.ExtKeyUsageServerAuth),
	} {
		certificate, key := mesh.sign(t, c)
		if _, err := s.Update(certificate, key); err == nil || !strings.HasPrefix(err.Error(), "taking the new cert") {
			t.Errorf("one %s: %v", name, err)
		}
	}
	if data, err := os.ReadFile(filepath.Join(dir, "kubelet-server-current.pem")); err != nil ||
		!bytes.HasPrefix(data, good) {
		t.Errorf("the folder holds %q, %v", data, err)
	}
	if told.Len() != 1 {
		t.Errorf("it tells %v", told.All())
	}
}
