package pod_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	restclient "k8s.io/client-go/rest"

	"keelson.dev/services/apiserver/internal/servertest"
)

// A connection does what its user wants in a container, however it is opened: who may only read does not get one, by
// WebSocket (which opens by GET) as little as by SPDY.
func testConnectionRights(t *testing.T, c *cluster, pods typedcorev1.PodInterface) {
	p := create(t, pods, nginx(onNode))
	for user, row := range map[string]struct {
		verbs  []string
		status int
		says   string
	}{
		"reader":  {[]string{"get", "list", "watch"}, http.StatusForbidden, `cannot create resource \"pods/`},
		"creator": {[]string{"create"}, http.StatusForbidden, `cannot get resource \"pods/`},
		"both":    {[]string{"get", "create"}, http.StatusSwitchingProtocols, ""},
	} {
		grant(t, c, p.Namespace, user, row.verbs)
		for asked, protocol := range map[string]string{
			"exec?command=true&stdout=true": "v5.channel.k8s.io",
			"attach?stdout=true":            "v5.channel.k8s.io",
			"portforward?ports=80":          "SPDY/3.1+portforward.k8s.io",
		} {
			status, says := open(t, c, user, p.Namespace, asked, protocol)
			if status != row.status || !strings.Contains(says, row.says) {
				t.Errorf(
					"%s by who may %v: got %d, %q, want %d, %q",
					asked,
					row.verbs,
					status,
					says,
					row.status,
					row.says,
				)
			}
		}
	}
}

// grant lets the user do that with the connections of Pods in the namespace, and returns when the server knows.
func grant(t *testing.T, c *cluster, namespace, user string, verbs []string) {
	t.Helper()
	roles := c.Client.RbacV1()
	meta := metav1.ObjectMeta{Name: user}
	_, err := roles.Roles(namespace).Create(t.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{""}, Resources: []string{"pods/exec", "pods/attach", "pods/portforward"}, Verbs: verbs,
	}}}, metav1.CreateOptions{})
	must(t, err)
	_, err = roles.RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: meta,
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}, metav1.CreateOptions{})
	must(t, err)
	servertest.AwaitRight(t, c.Client, authorizationv1.SubjectAccessReviewSpec{User: user,
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: verbs[0], Resource: "pods",
			Subresource: "exec"}})
}

// open asks for a connection by WebSocket and returns the status of the answer and its body, if it is a refusal.
func open(t *testing.T, c *cluster, user, namespace, asked, protocol string) (int, string) {
	t.Helper()
	config := c.ConfigAs(servertest.Admin)
	config.Impersonate = restclient.ImpersonationConfig{UserName: user}
	config.NextProtos = []string{"http/1.1"}
	transport, err := restclient.TransportFor(config)
	must(t, err)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
		config.Host+"/api/v1/namespaces/"+namespace+"/pods/nginx/"+asked, nil)
	must(t, err)
	for name, value := range map[string]string{
		"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
		"Sec-WebSocket-Key": "a2VlbHNvbi1rZWVsc29uIQ==", "Sec-WebSocket-Protocol": protocol,
	} {
		request.Header.Set(name, value)
	}
	answer, err := transport.RoundTrip(request)
	must(t, err)
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode == http.StatusSwitchingProtocols {
		return answer.StatusCode, ""
	}
	body, err := io.ReadAll(answer.Body)
	must(t, err)
	return answer.StatusCode, string(body)
}
