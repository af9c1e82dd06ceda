package integration

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"keelson.dev/kit/daemon"
	"keelson.dev/kit/failpoint"
	nodeagent "keelson.dev/services/nodeagent/inproc"
	"keelson.dev/test/mesh"
	"keelson.dev/test/mesh/inprocess"
	"keelson.dev/test/scenario"
)

// joining is a machine with a nodeagent that has nothing but a token.
type joining struct {
	*scenario.World
	dir    string
	config nodeagent.Config
}

// newJoining makes one whose node has no API.
func newJoining(t *testing.T, m *inprocess.Mesh) *joining {
	t.Helper()
	j := &joining{World: scenario.In(t, m), dir: t.TempDir(), config: nodeagent.NewConfig("joined")}
	c := &j.config
	c.RootDir, c.LogsDir, c.Simulated = filepath.Join(j.dir, "root"), filepath.Join(j.dir, "logs"), true
	c.Kubeconfig, c.Port = j.kubeconfig(), 0
	c.Certificates.Bootstrap, c.Certificates.Rotate = filepath.Join(j.dir, "bootstrap"), true
	scenario.LetNodesJoin(j.World)
	scenario.WriteBootstrap(j.World, c.Certificates.Bootstrap)
	return j
}

func (j *joining) kubeconfig() string { return filepath.Join(j.dir, "kubeconfig") }
func (j *joining) pair() string {
	return filepath.Join(j.dir, "root", "pki", "kubelet-client-current.pem")
}

// run starts the agent and returns what ends it.
func (j *joining) run() (stop func()) {
	handle := nodeagent.Start(j.Context(), j.config)
	return func() {
		j.Helper()
		if err := handle.Stop(); err != nil {
			j.Errorf("the agent ended: %v", err)
		}
	}
}

// awaitLease waits until the node has renewed its Lease after a moment.
func (j *joining) awaitLease(after time.Time) {
	j.Helper()
	j.Await(fmt.Sprintf("a Lease of the node that it has renewed after %v", after), func() scenario.Answer {
		lease, err := j.Client.CoordinationV1().Leases("kube-node-lease").Get(j.Context(), j.config.NodeName,
			metav1.GetOptions{})
		if err != nil {
			return scenario.Saw(err.Error())
		}
		if renewed := lease.Spec.RenewTime; renewed == nil || !renewed.After(after) {
			return scenario.Sawf("renewed at %v", renewed)
		}
		return ""
	})
}

// requests are how many requests for certificates there are.
func (j *joining) requests() int {
	j.Helper()
	list, err := j.Client.CertificatesV1().CertificateSigningRequests().List(j.Context(), metav1.ListOptions{})
	if err != nil {
		j.Fatal(err)
	}
	return len(list.Items)
}

// A nodeagent that only has a token becomes a node, even if its first start is interrupted, and requests nothing
// more when it starts again without the token. It renews a certificate that is about to expire, and goes on past
// its end: an apiserver accepts no client by an expired certificate, on an open connection neither. One that has
// expired while no agent ran takes a token again.
func TestNodeClientCertificateRotation(t *testing.T) {
	t.Parallel()
	m := inprocess.New(t, inprocess.Options{Without: []mesh.Daemon{mesh.Scheduler, mesh.NodeAgent}})
	j := newJoining(t, m)
	c := &j.config

	j.breakOff()
	start := time.Now()
	stop := j.run()
	j.awaitLease(start)
	if user := j.whoami(); user != "system:node:joined" {
		t.Errorf("the kubeconfig is of %q", user)
	}
	stop()
	if err := os.Remove(c.Certificates.Bootstrap); err != nil {
		t.Fatal(err)
	}
	first, asked := j.read(), j.requests()
	again := time.Now()
	stop = j.run()
	j.awaitLease(again)
	stop()
	if !bytes.Equal(first, j.read()) || j.requests() != asked {
		t.Errorf("an agent with a certificate that is good asks for one: %d requests, before %d", j.requests(), asked)
	}

	core, lines := observer.New(zap.WarnLevel)
	c.Environment = daemon.NewEnvironment("nodeagent")
	c.Environment.Log = zap.New(core)
	short := j.sign(m, time.Now().Add(25*time.Second))
	stop = j.run()
	j.Await("a certificate after the one that is about to expire", func() scenario.Answer {
		if now := j.leaf(); !now.NotAfter.After(short.NotAfter) {
			return scenario.Sawf("one until %v", now.NotAfter)
		}
		return ""
	})
	j.awaitLease(short.NotAfter.Add(time.Second))
	stop()
	c.Environment = nil
	for _, line := range lines.All() {
		if strings.Contains(fmt.Sprint(line.ContextMap()), "nauthorized") {
			j.Errorf("a request under the old certificate was not believed: %s %v", line.Message, line.ContextMap())
		}
	}

	expired := j.sign(m, time.Now().Add(-time.Second))
	scenario.WriteBootstrap(j.World, c.Certificates.Bootstrap)
	last := time.Now()
	stop = j.run()
	j.awaitLease(last)
	stop()
	if now := j.leaf(); !now.NotAfter.After(expired.NotAfter) {
		t.Errorf("it has one until %v", now.NotAfter)
	}
}

// breakOff has an agent fail to write its first certificate, and end before it writes the kubeconfig for the second.
func (j *joining) breakOff() {
	j.Helper()
	for _, place := range []string{"nodeagent/certificate.write.before", "nodeagent/kubeconfig.write.before"} {
		if err := failpoint.Arm(place, "1*error(broken off)"); err != nil {
			j.Fatal(err)
		}
		defer failpoint.Disarm(place)
	}
	if err := nodeagent.Start(j.Context(), j.config).Wait(); !errors.Is(err, failpoint.ErrInjected) {
		j.Fatalf("the agent ended: %v", err)
	}
	if _, err := os.Stat(j.kubeconfig()); !errors.Is(err, os.ErrNotExist) {
		j.Errorf("the kubeconfig: %v", err)
	}
	if got := j.requests(); got < 2 {
		j.Errorf("%d requests: none was lost", got)
	}
}

// whoami is who the API takes the kubeconfig's user for.
func (j *joining) whoami() string {
	j.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", j.kubeconfig())
	if err != nil {
		j.Fatal(err)
	}
	review, err := kubernetes.NewForConfigOrDie(config).AuthenticationV1().SelfSubjectReviews().Create(j.Context(),
		&authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		j.Fatal(err)
	}
	return review.Status.UserInfo.Username
}

func (j *joining) read() []byte {
	j.Helper()
	data, err := os.ReadFile(j.pair())
	if err != nil {
		j.Fatal(err)
	}
	return data
}

// leaf is the certificate that the node has now.
func (j *joining) leaf() *x509.Certificate {
	j.Helper()
	data := j.read()
	pair, err := tls.X509KeyPair(data, data)
	if err != nil {
		j.Fatal(err)
	}
	return pair.Leaf
}

// sign gives the node a certificate that the mesh's authority has signed and that ends then.
func (j *joining) sign(m *inprocess.Mesh, end time.Time) *x509.Certificate {
	j.Helper()
	certificateFile, keyFile := m.Authority()
	authority, err := tls.LoadX509KeyPair(certificateFile, keyFile)
	if err != nil {
		j.Fatal(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		j.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: end.Add(-5 * time.Minute), NotAfter: end,
		Subject:     pkix.Name{CommonName: "system:node:joined", Organization: []string{"system:nodes"}},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, authority.Leaf, key.Public(), authority.PrivateKey)
	if err != nil {
		j.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		j.Fatal(err)
	}
	if err := os.WriteFile(j.pair(), slices.Concat(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER})), 0o600); err != nil {
		j.Fatal(err)
	}
	return j.leaf()
}
