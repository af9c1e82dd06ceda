package scenario

import (
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/test/mesh"
)

// accountFolder is where a Pod finds who it is to the apiserver.
const accountFolder = "/var/run/secrets/kubernetes.io/serviceaccount"

// APIServerFailover has Pods ask the Service kubernetes while a second apiserver runs, and after that one was killed.
// join starts it on the second node, at the node's address and the first one's port, and returns how it is killed.
func APIServerFailover(t *testing.T, m mesh.Mesh, join func(t testing.TB, node, ip string) (kill func())) {
	w := In(t, m)
	all := w.traffic().startClients()
	one := apiserverAddresses(w)
	if len(one) != 1 {
		t.Fatalf("the Service kubernetes leads to %v, want the mesh's one apiserver", one)
	}
	awaitAPIServers(w, all, one...)
	node := m.Nodes()[1]
	ip := nodeIP(w, node)
	_, port, err := net.SplitHostPort(one[0])
	if err != nil {
		t.Fatal(err)
	}
	two := net.JoinHostPort(ip, port)
	kill := join(t, node, ip)
	awaitAPIServers(w, all, one[0], two)
	if got, want := apiserverAddresses(w), sorted(one[0], two); !slices.Equal(got, want) {
		t.Errorf("the Service kubernetes leads to %v, want %v", got, want)
	}
	kill()
	killed := time.Now()
	w.Await("the killed apiserver to leave the Service", func() Answer {
		if got := apiserverAddresses(w); !slices.Equal(got, one) {
			return Sawf("%v", got)
		}
		return ""
	})
	// How long it may take is held in the apiserver's tests, where time does not depend on the machine.
	t.Logf("the killed apiserver left the Service after %v", time.Since(killed).Round(100*time.Millisecond))
	awaitAPIServers(w, all, one...)
}

// apiserverAddresses are the addresses to which the EndpointSlices of the Service kubernetes lead, in order.
func apiserverAddresses(w *World) (addresses []string) {
	w.Helper()
	list, err := w.Client.DiscoveryV1().EndpointSlices(corev1.NamespaceDefault).List(w.Context(),
		metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=kubernetes"})
	if err != nil {
		w.Fatal(err)
	}
	for _, slice := range list.Items {
		for _, endpoint := range slice.Endpoints {
			addresses = append(addresses, net.JoinHostPort(endpoint.Addresses[0], fmt.Sprint(*slice.Ports[0].Port)))
		}
	}
	return sorted(addresses...)
}

// awaitAPIServers waits until every client, asking the Service kubernetes as its ServiceAccount, is answered by these
// apiservers and no other. Each says in an answer at which address it is.
func awaitAPIServers(w *World, all clients, want ...string) {
	w.Helper()
	want = sorted(want...)
	w.Await(fmt.Sprintf("the apiservers %v to answer at the Service kubernetes", want), func() Answer {
		url := "https://" + kubernetesIP(w) + "/api"
		for name, a := range w.traffic().each(all, "-n", enough, "-a", accountFolder, url) {
			var by []string
			for text := range a.by {
				by = append(by, answeringAPIServer(w, text))
			}
			if len(a.failed) > 0 || !slices.Equal(sorted(by...), want) {
				return Sawf("%s: %v, failures %v", name, by, a.failed)
			}
		}
		return ""
	})
}

// answeringAPIServer reads the address of an apiserver in its list of versions.
func answeringAPIServer(w *World, text string) string {
	w.Helper()
	var versions metav1.APIVersions
	if err := json.NewDecoder(strings.NewReader(text)).Decode(&versions); err != nil ||
		len(versions.ServerAddressByClientCIDRs) != 1 {
		w.Fatalf("the apiserver's list of versions is %q: %v", text, err)
	}
	return versions.ServerAddressByClientCIDRs[0].ServerAddress
}

func sorted(texts ...string) []string { return slices.Sorted(slices.Values(texts)) }
