package servertest_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/gorilla/websocket"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	restclient "k8s.io/client-go/rest"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	aggregatorclient "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset"
	"k8s.io/utils/ptr"

	"keelson.dev/services/apiserver/inproc"
	"keelson.dev/services/apiserver/internal/servertest"
)

// endpointIP stands for the extension's Pod: no test has it as an address.
const endpointIP = "192.0.2.1"

// extension is an API server of the test: it serves the flunders of wardle.example.com/v1alpha1, to whom the front
// proxy's certificate vouches for.
type extension struct {
	*httptest.Server
	// trusts verifies the certificate of who asks; it is looked up in the mesh, as extensions do.
	trusts atomic.Pointer[x509.CertPool]
	// discovery is what it answers when it is asked for its resources.
	discovery atomic.Value
	// documents answers what it is asked of OpenAPI.
	documents atomic.Pointer[http.Handler]
	port      int32
}

const flunders = `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"wardle.example.com/v1alpha1","resources":[` +
	`{"name":"flunders","singularName":"flunder","namespaced":true,"kind":"Flunder","verbs":["get","list"]}]}`

func startExtension(t *testing.T) *extension {
	t.Helper()
	e := &extension{}
	e.discovery.Store(flunders)
	e.Server = httptest.NewUnstartedServer(e)
	e.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	e.EnableHTTP2 = true
	e.StartTLS()
	t.Cleanup(e.Close)
	e.port = int32(e.Listener.Addr().(*net.TCPAddr).Port)
	return e
}

// ServeHTTP answers who is known with what arrived of the request.
func (e *extension) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if roots := e.trusts.Load(); roots != nil {
		if len(r.TLS.PeerCertificates) == 0 {
			http.Error(w, "no certificate", http.StatusUnauthorized)
			return
		}
		_, err := r.TLS.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots,
			KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
		if err != nil || r.TLS.PeerCertificates[0].Subject.CommonName != "keelson-front-proxy" {
			http.Error(w, fmt.Sprint("not the front proxy: ", err), http.StatusUnauthorized)
			return
		}
	}
	switch {
	case r.URL.Path == "/apis/wardle.example.com/v1alpha1":
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, e.discovery.Load().(string))
	case strings.HasPrefix(r.URL.Path, "/openapi/"):
		e.answerDocuments(w, r)
	case strings.HasSuffix(r.URL.Path, "/exec"):
		e.echo(w, r)
	case strings.HasSuffix(r.URL.Path, "/elsewhere"):
		http.Redirect(w, r, "https://elsewhere.example.com/", http.StatusFound)
	case r.URL.Query().Get("watch") != "":
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	default:
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"path": r.URL.RequestURI(), "host": r.Host,
			"headers": r.Header})
	}
}

// echo greets who asks and sends back one message.
func (e *extension) echo(w http.ResponseWriter, r *http.Request) {
	conn, err := (&websocket.Upgrader{}).Upgrade(w, r, nil)
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }()
	_ = conn.WriteMessage(websocket.TextMessage, []byte(r.Header.Get("X-Remote-User")))
	if kind, message, err := conn.ReadMessage(); err == nil {
		_ = conn.WriteMessage(kind, message)
	}
}

// dial leads to the extension in place of its Pod.
func dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil || host != endpointIP {
		return nil, fmt.Errorf("%s is not the extension's endpoint", address)
	}
	return (&net.Dialer{}).DialContext(ctx, network, net.JoinHostPort("127.0.0.1", port))
}

// aggregated is a server with the APIService of an extension.
type aggregated struct {
	*servertest.Server
	*extension
	services aggregatorclient.Interface
}

func startAggregated(t *testing.T) *aggregated {
	t.Helper()
	s := servertest.Start(t, func(c *inproc.Config) { c.DialExtension = dial })
	services, err := aggregatorclient.NewForConfig(s.ConfigAs(servertest.Admin))
	if err != nil {
		t.Fatal(err)
	}
	a := &aggregated{s, startExtension(t), services}
	a.trusts.Store(a.frontProxies(t))
	s.Namespace(t, "wardle")
	_, err = s.Client.CoreV1().Services("wardle").Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "api"},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "https", Port: 443}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	a.endpoints(t)
	_, err = services.ApiregistrationV1().APIServices().Create(t.Context(), &apiregistration.APIService{
		ObjectMeta: metav1.ObjectMeta{Name: "v1alpha1.wardle.example.com"},
		Spec: apiregistration.APIServiceSpec{Group: "wardle.example.com", Version: "v1alpha1",
			GroupPriorityMinimum: 2000, VersionPriority: 200, InsecureSkipTLSVerify: true,
			Service: &apiregistration.ServiceReference{Namespace: "wardle", Name: "api"}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	a.await(t, "True Passed")
	a.answers(t)
	return a
}

// answers waits until requests are handed on: the server reads from a watch what the APIService has in the store.
func (a *aggregated) answers(t *testing.T) {
	t.Helper()
	servertest.Eventually(t, "requests that are handed on", func(context.Context) string {
		if code, body := a.send(t, servertest.Admin, listed, nil); code != http.StatusOK {
			return fmt.Sprint(code, body)
		}
		return ""
	})
}

// frontProxies are the authorities that the mesh names to extensions: who is bound to the Role for them may read it.
func (a *aggregated) frontProxies(t *testing.T) *x509.CertPool {
	t.Helper()
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "extension"},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role",
			Name: "extension-apiserver-authentication-reader"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "ann"}},
	}
	if _, err := a.Client.RbacV1().RoleBindings(metav1.NamespaceSystem).Create(t.Context(), binding,
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	ann := a.As(t, "ann")
	var config *corev1.ConfigMap
	servertest.Eventually(t, "the ConfigMap for extensions", func(ctx context.Context) string {
		var err error
		config, err = ann.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, "extension-apiserver-authentication",
			metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		return ""
	})
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(config.Data["requestheader-client-ca-file"])) {
		t.Fatalf("the ConfigMap has no authority: %v", config.Data)
	}
	for key, want := range map[string]string{
		"requestheader-allowed-names": `["keelson-front-proxy"]`, "requestheader-username-headers": `["X-Remote-User"]`,
		"requestheader-group-headers": `["X-Remote-Group"]`, "requestheader-uid-headers": `["X-Remote-Uid"]`,
		"requestheader-extra-headers-prefix": `["X-Remote-Extra-"]`,
	} {
		if got := config.Data[key]; got != want {
			t.Errorf("%s is %s, want %s", key, got, want)
		}
	}
	return roots
}

func (a *aggregated) endpoints(t *testing.T) {
	t.Helper()
	_, err := a.Client.DiscoveryV1().EndpointSlices("wardle").Create(t.Context(), &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: "api", Labels: map[string]string{discoveryv1.LabelServiceName: "api"}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: ptr.To("https"), Port: ptr.To(a.port)}},
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{endpointIP}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// await waits until the condition Available has the status and the reason.
func (a *aggregated) await(t *testing.T, want string) {
	t.Helper()
	servertest.Eventually(t, "the APIService as "+want, func(ctx context.Context) string {
		service, err := a.services.ApiregistrationV1().APIServices().Get(ctx, "v1alpha1.wardle.example.com",
			metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		for _, c := range service.Status.Conditions {
			if string(c.Status)+" "+c.Reason == want {
				return ""
			}
		}
		return fmt.Sprintf("it is %+v", service.Status.Conditions)
	})
}

// send sends a request in the name of user.
func (a *aggregated) send(t *testing.T, user, path string, headers map[string]string) (int, string) {
	t.Helper()
	config := a.ConfigAs(user)
	// HTTP/2 has no header Connection.
	config.NextProtos = []string{"http/1.1"}
	client, err := restclient.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+a.Address()+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	response, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

const listed = "/apis/wardle.example.com/v1alpha1/namespaces/wardle/flunders"

// A request is handed on in the name of who was authenticated, only to whom RBAC lets through, and nothing that the
// client says of itself arrives.
func TestAggregatedRequest(t *testing.T) {
	a := startAggregated(t)
	if code, _ := a.send(t, "ann", listed, nil); code != http.StatusForbidden {
		t.Errorf("without a role: status %d, want 403", code)
	}
	_, err := a.Client.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "flunders"},
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{"wardle.example.com"}, Resources: []string{"*"},
			Verbs: []string{"list"}}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = a.Client.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "flunders"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "flunders"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "ann"}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	servertest.Eventually(t, "ann's right", func(context.Context) string {
		if code, body := a.send(t, "ann", listed, nil); code != http.StatusOK {
			return body
		}
		return ""
	})
	code, body := a.send(t, "ann", listed+"?limit=5", map[string]string{"X-Remote-User": "eve", "X-Remote-Uid": "1",
		"X-Remote-Group": "system:masters", "X-Remote-Extra-Scopes": "all", "Connection": "X-Remote-Group"})
	var got struct {
		Path, Host string
		Headers    http.Header
	}
	if err := json.Unmarshal([]byte(body), &got); code != http.StatusOK || err != nil {
		t.Fatalf("status %d, %s", code, body)
	}
	h := got.Headers
	if h.Get("X-Remote-User") != "ann" || h.Get("X-Remote-Uid") != "uid-ann" ||
		slices.Contains(h.Values("X-Remote-Group"), "system:masters") ||
		!slices.Contains(h.Values("X-Remote-Group"), "system:authenticated") ||
		h.Get("X-Remote-Extra-Scopes") != "" || h.Get("Authorization") != "" {
		t.Errorf("the request came with %v", h)
	}
	if got.Path != listed+"?limit=5" || got.Host != "api.wardle.svc" {
		t.Errorf("the request came to %s at %s", got.Path, got.Host)
	}
}

// A connection that is upgraded is handed on with the identity too, and carries messages both ways.
func TestAggregatedUpgrade(t *testing.T) {
	a := startAggregated(t)
	dialer := websocket.Dialer{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	conn, response, err := dialer.DialContext(t.Context(), "wss://"+a.Address()+listed+"/one/exec", http.Header{
		"Authorization": {"Bearer token-" + servertest.Admin}, "X-Remote-User": {"eve"}})
	if err != nil {
		t.Fatalf("upgrading: %v, %+v", err, response)
	}
	defer response.Body.Close()
	defer func() { _ = conn.Close() }()
	if _, who, err := conn.ReadMessage(); err != nil || string(who) != servertest.Admin {
		t.Errorf("the stream belongs to %q, %v", who, err)
	}
	if err := conn.WriteMessage(websocket.TextMessage, []byte("hello")); err != nil {
		t.Fatal(err)
	}
	if _, said, err := conn.ReadMessage(); err != nil || string(said) != "hello" {
		t.Errorf("back came %q, %v", said, err)
	}
}

// Redirects, loops and paths that two servers could read differently go nowhere.
func TestAggregatedRefusals(t *testing.T) {
	a := startAggregated(t)
	for _, row := range []struct {
		path    string
		headers map[string]string
		code    int
	}{
		{listed + "/elsewhere", nil, http.StatusBadGateway},
		{listed, map[string]string{"Via": "1.1 keelson-aggregation"}, http.StatusLoopDetected},
		{"/apis/wardle.example.com/v1alpha1/a/%2e%2e/b", nil, http.StatusBadRequest},
		{"/apis/wardle.example.com/v2/flunders", nil, http.StatusNotFound},
		{"/apis/other.example.com/v1/flunders", nil, http.StatusNotFound},
	} {
		if code, body := a.send(t, servertest.Admin, row.path, row.headers); code != row.code {
			t.Errorf("%s: status %d, want %d: %s", row.path, code, row.code, body)
		}
	}
}

// Discovery in both forms tells of the group, and of its resources while the server answers.
func TestAggregatedDiscovery(t *testing.T) {
	a := startAggregated(t)
	_, lists, err := a.Client.Discovery().ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	found := slices.ContainsFunc(lists, func(l *metav1.APIResourceList) bool {
		return l.GroupVersion == "wardle.example.com/v1alpha1" && l.APIResources[0].Kind == "Flunder"
	})
	if !found {
		t.Error("the flunders are not among the resources")
	}
	for path, want := range map[string]string{
		"/apis":                             `"groupVersion":"wardle.example.com/v1alpha1"`,
		"/apis/wardle.example.com":          `"preferredVersion":{"groupVersion":"wardle.example.com/v1alpha1"`,
		"/apis/wardle.example.com/v1alpha1": `"kind":"Flunder"`,
	} {
		if code, body := a.send(t, "bob", path, nil); code != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s: status %d, %s", path, code, body)
		}
	}
	service := a.services.ApiregistrationV1().APIServices()
	if err := service.Delete(t.Context(), "v1alpha1.wardle.example.com", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	servertest.Eventually(t, "a mesh without flunders", func(context.Context) string {
		for _, form := range []string{"", ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"} {
			accept := map[string]string{"Accept": "application/json" + form}
			if code, body := a.send(t, "bob", "/apis", accept); strings.Contains(body, "wardle") {
				return fmt.Sprint(code, body)
			}
		}
		if code, body := a.send(t, servertest.Admin, listed, nil); code != http.StatusNotFound {
			return fmt.Sprint(code, body)
		}
		return ""
	})
}

// A server that goes away is told of with the reason, requests get one sentence, and it comes back by itself.
func TestAggregatedAvailability(t *testing.T) {
	a := startAggregated(t)
	expectStale := func() {
		t.Helper()
		servertest.Eventually(t, "discovery that says that it is not whole", func(context.Context) string {
			_, _, err := a.Client.Discovery().ServerGroupsAndResources()
			if err == nil || !strings.Contains(err.Error(), "wardle.example.com/v1alpha1") {
				return fmt.Sprintf("it says %v", err)
			}
			return ""
		})
	}
	a.discovery.Store(`{"kind":"APIResourceList","groupVersion":"apps/v1"}`)
	a.update(t, func(s *apiregistration.APIService) { s.Spec.VersionPriority = 300 })
	a.await(t, "False FailedDiscoveryCheck")
	expectStale()
	a.discovery.Store(flunders)
	a.await(t, "True Passed")
	if err := a.Client.DiscoveryV1().EndpointSlices("wardle").Delete(t.Context(), "api",
		metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	servertest.Eventually(t, "no answer", func(context.Context) string {
		code, body := a.send(t, servertest.Admin, listed, nil)
		if code != http.StatusServiceUnavailable || !strings.Contains(body,
			"the APIService v1alpha1.wardle.example.com is unavailable: "+
				"there are no endpoints for the service wardle/api") {
			return fmt.Sprint(code, body)
		}
		return ""
	})
	a.await(t, "False EndpointsNotFound")
	expectStale()
	a.endpoints(t)
	a.await(t, "True Passed")
	a.answers(t)
	a.update(t, func(s *apiregistration.APIService) {
		s.Spec.InsecureSkipTLSVerify, s.Spec.CABundle = false, []byte("no certificate")
	})
	a.await(t, "False FailedDiscoveryCheck")
	a.update(t, func(s *apiregistration.APIService) { s.Spec.CABundle = another(t) })
	a.await(t, "False FailedDiscoveryCheck")
	if code, _ := a.send(t, servertest.Admin, listed, nil); code != http.StatusServiceUnavailable {
		t.Errorf("a server with another's certificate: status %d, want 503", code)
	}
}

// update changes the APIService.
func (a *aggregated) update(t *testing.T, change func(*apiregistration.APIService)) {
	t.Helper()
	servertest.Eventually(t, "the update", func(ctx context.Context) string {
		service, err := a.services.ApiregistrationV1().APIServices().Get(ctx, "v1alpha1.wardle.example.com",
			metav1.GetOptions{})
		if err == nil {
			change(service)
			_, err = a.services.ApiregistrationV1().APIServices().Update(ctx, service, metav1.UpdateOptions{})
		}
		if err != nil {
			return err.Error()
		}
		return ""
	})
}

// another is an authority that did not sign the extension's certificate.
func another(t *testing.T) []byte {
	t.Helper()
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: servertest.NewAuthority(t).Raw()})
}

// What the apiserver serves itself is never handed on, whatever an APIService says.
func TestBuiltInGroupsAreNotAggregated(t *testing.T) {
	a := startAggregated(t)
	services := a.services.ApiregistrationV1().APIServices()
	for name, want := range map[string]string{"v1.apps": "True", "v9.apps": "False", "v1.": "True"} {
		version, group, _ := strings.Cut(name, ".")
		claim := &apiregistration.APIService{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: apiregistration.APIServiceSpec{Group: group, Version: version, GroupPriorityMinimum: 20000,
				VersionPriority: 1000, InsecureSkipTLSVerify: true,
				Service: &apiregistration.ServiceReference{Namespace: "wardle", Name: "api"}}}
		// The apiserver makes its own, and leaves alone what has not its label.
		servertest.Eventually(t, "the APIService "+name, func(ctx context.Context) string {
			err := services.Delete(ctx, name, metav1.DeleteOptions{})
			if err != nil && !apierrors.IsNotFound(err) {
				return err.Error()
			}
			if _, err = services.Create(ctx, claim, metav1.CreateOptions{}); err != nil {
				return err.Error()
			}
			return ""
		})
		servertest.Eventually(t, name+" as Local", func(ctx context.Context) string {
			service, err := services.Get(ctx, name, metav1.GetOptions{})
			if err != nil || len(service.Status.Conditions) == 0 {
				return fmt.Sprint("no condition: ", err)
			}
			if c := service.Status.Conditions[0]; string(c.Status) != want || c.Reason != "Local" {
				return fmt.Sprintf("%+v", c)
			}
			return ""
		})
	}
	if _, err := a.Client.AppsV1().Deployments("wardle").List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
	if code, _ := a.send(t, servertest.Admin, "/apis/apps/v9/deployments", nil); code != http.StatusNotFound {
		t.Errorf("apps/v9: status %d, want 404", code)
	}
	if _, _, err := a.Client.Discovery().ServerGroupsAndResources(); err != nil {
		t.Error(err)
	}
	_, err := a.Client.CoreV1().Secrets("kube-system").Get(t.Context(), "apiserver-front-proxy", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		t.Error("the front proxy's certificate is not kept")
	}
}

// A watch of another server keeps no seat of a priority level here.
func TestAggregatedWatchKeepsNoSeat(t *testing.T) {
	a := startAggregated(t)
	config := a.ConfigAs(servertest.Admin)
	config.Impersonate = restclient.ImpersonationConfig{UserName: "eve", Groups: []string{"system:authenticated"}}
	bindCluster(t, a.Server, "cluster-admin", "eve")
	client, err := restclient.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	servertest.Eventually(t, "a watch", func(context.Context) string {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, config.Host+listed+"?watch=true", nil)
		if err != nil {
			return err.Error()
		}
		response, err := client.Do(r)
		if err != nil {
			return err.Error()
		}
		t.Cleanup(func() { _ = response.Body.Close() })
		if response.StatusCode != http.StatusOK || response.Header.Get("X-Kubernetes-PF-FlowSchema-UID") == "" {
			return fmt.Sprint(response.Status, response.Header)
		}
		return ""
	})
	noSeat(t, a.Server, "global-default")
}
