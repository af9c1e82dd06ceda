package resourcetest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	restclient "k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"keelson.dev/services/apiserver/internal/servertest"
)

// ownAddress is one of the machine that is not loopback's, which the apiserver does not hand requests on to.
func ownAddress(t *testing.T) string {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range addresses {
		if network, ok := address.(*net.IPNet); ok && network.IP.IsGlobalUnicast() {
			return network.IP.String()
		}
	}
	t.Skip("the machine has no address but loopback's, and those are refused")
	return ""
}

// echo answers what it was asked, and speaks back on an upgraded connection.
func echo(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Upgrade") == "" {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			_, err = fmt.Fprintf(w, "%s %s %s %s", r.Method, r.URL.RequestURI(), body, r.Header["Authorization"])
		}
		if err != nil {
			panic(err)
		}
		return
	}
	connection, stream, err := w.(http.Hijacker).Hijack()
	if err != nil {
		panic(err)
	}
	defer connection.Close()
	say := func(text string) {
		if _, err := connection.Write([]byte(text)); err != nil {
			panic(err)
		}
	}
	say("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	line, err := stream.ReadString('\n')
	if err != nil {
		panic(err)
	}
	say("heard " + line)
}

// serving runs the server at an address and returns its port.
func serving(t *testing.T, address string) int32 {
	t.Helper()
	listener, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(echo))
	server.Listener.Close()
	server.Listener = listener
	server.Start()
	t.Cleanup(server.Close)
	return int32(listener.Addr().(*net.TCPAddr).Port)
}

// behind makes a Pod at the address and a Service with one port before it.
func behind(t *testing.T, s *servertest.Server, namespace, address string, port int32) {
	t.Helper()
	ctx := t.Context()
	pods := s.Client.CoreV1().Pods(namespace)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "web", Image: "web", Ports: []corev1.ContainerPort{
			{Name: "http", ContainerPort: port}}}}}}
	pod = must[*corev1.Pod](t, "creating the Pod")(pods.Create(ctx, pod, metav1.CreateOptions{}))
	pod.Status.PodIP, pod.Status.PodIPs = address, []corev1.PodIP{{IP: address}}
	must[*corev1.Pod](t, "giving the Pod its address")(pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{}))
	service := newService("web", corev1.ServiceTypeClusterIP)
	service.Spec.Ports = []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromString("http")}}
	must[*corev1.Service](t, "creating the Service")(s.Client.CoreV1().Services(namespace).Create(ctx, service,
		metav1.CreateOptions{}))
}

// leads makes the Service lead to an address, of a Pod unless pod is empty.
func leads(t *testing.T, s *servertest.Server, namespace, address, pod string, port int32) {
	t.Helper()
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: "web", Labels: map[string]string{"kubernetes.io/service-name": "web"}},
		AddressType: "IPv4", Ports: []discoveryv1.EndpointPort{{Name: ptr.To("http"), Port: &port}},
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{address}}},
	}
	if pod != "" {
		slice.Endpoints[0].TargetRef = &corev1.ObjectReference{Kind: "Pod", Namespace: namespace, Name: pod}
	}
	must[*discoveryv1.EndpointSlice](t, "creating the slice")(s.Client.DiscoveryV1().EndpointSlices(namespace).Create(
		t.Context(), slice, metav1.CreateOptions{}))
}

// Whatever the verb, a request at /proxy of a Pod or a Service arrives with its path, its query and its body, and
// without the credentials of who sent it.
func testProxies(t *testing.T, s *servertest.Server) {
	ctx, namespace, address := t.Context(), s.Namespace(t, "proxies"), ownAddress(t)
	port := serving(t, address)
	behind(t, s, namespace, address, port)
	leads(t, s, namespace, address, "web", port)
	client := s.Client.CoreV1().RESTClient()
	for _, row := range []struct{ verb, path, want string }{
		{"GET", "services/web:http/proxy/a/b?c=d", "GET /a/b?c=d  []"},
		{"GET", "services/web/proxy/", "GET /  []"},
		{"POST", "services/http:web:80/proxy/a", "POST /a sent []"},
		{"PUT", "pods/web/proxy/a/", "PUT /a/ sent []"},
		{"PATCH", "pods/web:http/proxy/a", "PATCH /a sent []"},
		{"DELETE", fmt.Sprintf("pods/http:web:%d/proxy/a", port), "DELETE /a  []"},
	} {
		request := client.Verb(row.verb).RequestURI("/api/v1/namespaces/" + namespace + "/" + row.path)
		if strings.HasPrefix(row.verb, "P") {
			request = request.Body([]byte("sent"))
		}
		var got []byte
		servertest.Eventually(t, row.path, func(context.Context) string {
			var err error
			if got, err = request.DoRaw(ctx); err != nil {
				return err.Error()
			}
			return ""
		})
		if string(got) != row.want {
			t.Errorf("%s %s: %q, want %q", row.verb, row.path, got, row.want)
		}
	}
	upgraded(t, s, "/api/v1/namespaces/"+namespace+"/services/web/proxy/")
	upgraded(t, s, "/api/v1/namespaces/"+namespace+"/pods/web/proxy/")
}

// upgrade asks what is at the path to go on in a protocol of its own.
func upgrade(t *testing.T, s *servertest.Server, path string) (*http.Response, error) {
	t.Helper()
	config := s.ConfigAs(servertest.Admin)
	config.NextProtos = []string{"http/1.1"}
	transport, err := restclient.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, config.Host+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Connection", "Upgrade")
	request.Header.Set("Upgrade", "echo")
	return transport.RoundTrip(request)
}

// upgraded speaks to what is at the path in a protocol of its own.
func upgraded(t *testing.T, s *servertest.Server, path string) {
	t.Helper()
	response, err := upgrade(t, s, path)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	stream, ok := response.Body.(io.ReadWriteCloser)
	if response.StatusCode != http.StatusSwitchingProtocols || !ok {
		t.Fatalf("%s: got %s, want an upgraded connection", path, response.Status)
	}
	if _, err := io.WriteString(stream, "hello\n"); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(stream).ReadString('\n'); line != "heard hello\n" {
		t.Errorf("%s: got %q, %v", path, line, err)
	}
}

// Who may write endpoints and addresses reaches nothing by the apiserver that is not a Pod of the namespace, and never
// the apiserver's own machine.
func testRefusedProxies(t *testing.T, s *servertest.Server) {
	ctx, address := t.Context(), ownAddress(t)
	port := serving(t, address)
	loopback := serving(t, "127.0.0.1")
	get := func(namespace, path string) error {
		_, err := s.Client.CoreV1().RESTClient().Get().RequestURI("/api/v1/namespaces/" + namespace + path).DoRaw(ctx)
		return err
	}
	stranger := s.Namespace(t, "refused-proxies-stranger")
	behind(t, s, stranger, "10.1.2.3", port)
	leads(t, s, stranger, address, "web", port)
	if err := get(stranger, "/services/web/proxy/"); !apierrors.IsServiceUnavailable(err) {
		t.Errorf("an address that the Pod does not have: %v", err)
	}
	nobody := s.Namespace(t, "refused-proxies-nobody")
	behind(t, s, nobody, address, port)
	leads(t, s, nobody, address, "", port)
	if err := get(nobody, "/services/web/proxy/"); !apierrors.IsServiceUnavailable(err) {
		t.Errorf("an address of no Pod: %v", err)
	}
	if err := get(nobody, "/services/web:443/proxy/"); !apierrors.IsServiceUnavailable(err) {
		t.Errorf("a port that the Service does not have: %v", err)
	}
	own := s.Namespace(t, "refused-proxies-own")
	behind(t, s, own, "127.0.0.1", loopback)
	if err := get(own, "/pods/web/proxy/"); !apierrors.IsServiceUnavailable(err) {
		t.Errorf("a Pod that says that it is the apiserver's machine: %v", err)
	}
	response, err := upgrade(t, s, "/api/v1/namespaces/"+own+"/pods/web/proxy/")
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode < http.StatusInternalServerError {
		t.Errorf("an upgraded connection to the apiserver's machine: %s", response.Status)
	}
	if err := get(own, "/pods/missing/proxy/"); !apierrors.IsNotFound(err) {
		t.Errorf("a Pod that is missing: %v", err)
	}
}
