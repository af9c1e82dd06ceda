package view

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

func TestProgrammedState(t *testing.T) {
	const answer = `{"programmed":true,"services":3,"ports":[
		{"name":"http","protocol":"TCP","clusterIPs":["10.96.0.7","fd00::7"],"port":80,"nodePort":30080,
		 "endpoints":["10.0.0.1:8080","10.0.0.2:8080"]},
		{"name":"","protocol":"UDP","clusterIPs":["10.96.0.7"],"port":53}]}`
	for _, row := range []struct {
		name   string
		answer string
		err    error
		want   string
	}{
		{"none runs", "", asked(t, http.StatusNotFound), "runs no service proxy of Keelson's"},
		{"it fails", "", asked(t, http.StatusForbidden), "does not answer: "},
		{"silent", "", errors.New("context deadline exceeded"), "does not answer: context deadline exceeded"},
		{"garbled", "<html>", nil, "answers what cannot be read: "},
		{"not yet", `{"programmed":false}`, nil, "has not programmed it"},
		{"no ports", `{"programmed":true}`, nil, "has programmed it"},
		{"since", `{"programmed":true,"since":"2026-01-10T12:00:00Z"}`, nil, "has programmed it since 2026-01-10 "},
		{"a problem", `{"programmed":true,"problems":["no SCTP here"]}`, nil, "has programmed it: no SCTP here"},
		{"all", answer, nil, "has programmed it: http 80/TCP of 10.96.0.7, fd00::7 and node port 30080 to " +
			"10.0.0.1:8080, 10.0.0.2:8080; 53/UDP of 10.96.0.7 is refused, there is no endpoint"},
	} {
		t.Run(row.name, func(t *testing.T) {
			got := programmedState([]byte(row.answer), row.err)
			whole := !strings.HasSuffix(row.want, " ")
			if !strings.HasPrefix(got, row.want) || whole && got != row.want {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
}

// asked is the error of a client that gets an answer of a status in plain text, as those of a node are.
func asked(t *testing.T, status int) error {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "what the node says", status)
	}))
	defer server.Close()
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.CoreV1().RESTClient().Get().AbsPath("/").DoRaw(t.Context())
	return err
}

func TestWriteService(t *testing.T) {
	s := Service{Workload: Workload{Kind: "Service", Object: &corev1.Service{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "web"}}}, Addresses: []string{"cluster IP 10.96.0.7, port 80/TCP"},
		Nodes: []NodeView{{"node-1", "has programmed it"}}, NodesUnknown: "listing the nodes: refused"}
	var out bytes.Buffer
	s.Write(&out)
	const addressed = "\naddresses:\n  cluster IP 10.96.0.7, port 80/TCP\n"
	for _, want := range []string{"Service default/web: made at", addressed,
		"\nnodes:\n  listing the nodes: refused\n  node-1: has programmed it\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	s.Nodes, s.NodesUnknown = nil, ""
	out.Reset()
	s.Write(&out)
	if want := addressed + "\nnodes:\n  there is none that could carry it\n"; !strings.HasSuffix(out.String(), want) {
		t.Errorf("without nodes it does not end with %q:\n%s", want, out.String())
	}
}

func TestAddresses(t *testing.T) {
	ports := []corev1.ServicePort{{Port: 80, Protocol: "TCP", NodePort: 30080}, {Port: 53, Protocol: "UDP"}}
	for _, row := range []struct {
		spec     corev1.ServiceSpec
		balanced []corev1.LoadBalancerIngress
		want     string
	}{
		{corev1.ServiceSpec{Type: "ExternalName", ExternalName: "example.com"}, nil, "its name stands for example.com"},
		{corev1.ServiceSpec{ClusterIP: "None", ClusterIPs: []string{"None"}, Ports: ports[1:]}, nil,
			"it is headless: its name leads to the Pods themselves"},
		{corev1.ServiceSpec{ClusterIP: "10.96.0.7", ClusterIPs: []string{"10.96.0.7", "fd00::7"},
			Ports: ports[1:]}, nil,
			"cluster IP 10.96.0.7, fd00::7, port 53/UDP"},
		{corev1.ServiceSpec{Type: "NodePort", ClusterIPs: []string{"10.96.0.7"}, Ports: ports,
			ExternalIPs: []string{"203.0.113.9"}}, nil, "cluster IP 10.96.0.7, port 80/TCP, 53/UDP; " +
			"every node, port 30080/TCP; external IP 203.0.113.9, port 80/TCP, 53/UDP"},
		{corev1.ServiceSpec{Type: "LoadBalancer", ClusterIPs: []string{"10.96.0.7"}, Ports: ports[1:]}, nil,
			"cluster IP 10.96.0.7, port 53/UDP; waits for somebody to give it a load balancer"},
		{corev1.ServiceSpec{Type: "LoadBalancer", ClusterIPs: []string{"10.96.0.7"}, Ports: ports[1:]},
			[]corev1.LoadBalancerIngress{{IP: "203.0.113.1"}, {Hostname: "lb.example.com"}},
			"cluster IP 10.96.0.7, port 53/UDP; load balancer 203.0.113.1, lb.example.com, port 53/UDP"},
	} {
		s := &corev1.Service{Spec: row.spec}
		s.Status.LoadBalancer.Ingress = row.balanced
		if got := strings.Join(addresses(s), "; "); got != row.want {
			t.Errorf("got %q, want %q", got, row.want)
		}
	}
}
