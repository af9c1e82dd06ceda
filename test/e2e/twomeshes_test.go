package e2e

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"keelson.dev/kit/nettest"
	"keelson.dev/test/mesh/processes"
)

// TestTwoMeshesOnOneMachine runs two meshes on one machine at a time. Each has its own API and Pods behind its own
// Services, and keel down of one leaves the other at work, with all that it has in the kernel.
func TestTwoMeshesOnOneMachine(t *testing.T) {
	before := nettest.Standing(t)
	first := newNeighbour(t, "first")
	alone := nettest.Standing(t)
	second := newNeighbour(t, "second")
	for _, n := range []*neighbour{first, second} {
		n.works()
	}
	takeDown(t, second.mesh, alone)
	if lost := without(alone, nettest.Standing(t)); len(lost) > 0 {
		t.Errorf("keel down of one mesh took along of the other:\n%s", strings.Join(lost, "\n"))
	}
	first.works()
	awaitRunning(t, first.client, "later")
	takeDown(t, first.mesh, before)
}

// neighbour is a mesh of one node with a Pod of that name behind a Service.
type neighbour struct {
	t      *testing.T
	mesh   *processes.Mesh
	client kubernetes.Interface
	name   string
}

func newNeighbour(t *testing.T, name string) *neighbour {
	t.Helper()
	m := processes.New(t, 1)
	client, err := kubernetes.NewForConfig(m.Admin())
	must(t, err)
	awaitRunning(t, client, name)
	awaitService(t, client, name)
	return &neighbour{t, m, client, name}
}

// works sees the Pod answer at the address of its Service, and the mesh's own API at the address that Pods have for it:
// another one would have a certificate of another authority.
func (n *neighbour) works() {
	n.t.Helper()
	if got := n.get(http.DefaultTransport, "http://"+n.address(n.name)+"/hostname"); strings.TrimSpace(got) != n.name {
		n.t.Errorf("the Service of %s is answered by %q", n.name, got)
	}
	inside := rest.CopyConfig(n.mesh.Admin())
	inside.Host = "https://" + n.address("kubernetes")
	transport, err := rest.TransportFor(inside)
	must(n.t, err)
	n.get(transport, inside.Host+"/api/v1/namespaces/default/pods/"+n.name)
}

// address is that of a Service.
func (n *neighbour) address(service string) string {
	n.t.Helper()
	found, err := n.client.CoreV1().Services("default").Get(n.t.Context(), service, metav1.GetOptions{})
	must(n.t, err)
	return found.Spec.ClusterIP
}

// get returns the body of an answer with status 200.
func (n *neighbour) get(over http.RoundTripper, url string) (text string) {
	n.t.Helper()
	var last string
	if err := wait.PollUntilContextTimeout(n.t.Context(), 100*time.Millisecond, 90*time.Second, true,
		func(context.Context) (bool, error) {
			answer, err := (&http.Client{Transport: over, Timeout: 5 * time.Second}).Get(url)
			if err != nil {
				last = err.Error()
				return false, nil
			}
			defer answer.Body.Close()
			body, err := io.ReadAll(answer.Body)
			text, last = string(body), answer.Status
			return err == nil && answer.StatusCode == http.StatusOK, nil
		}); err != nil {
		n.t.Fatalf("%s of mesh %s: %s: %v", url, n.name, last, err)
	}
	return text
}
