package inprocess

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// guarded returns a configuration whose client refuses, and reports, the requests that the rules do not allow,
// before the server sees them.
func guarded(config *rest.Config, rules []rbacv1.PolicyRule, refused func(request string)) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &guard{next: next, rules: rules, refused: refused}
	})
	return config
}

type guard struct {
	next    http.RoundTripper
	rules   []rbacv1.PolicyRule
	refused func(string)
}

// RoundTrip implements http.RoundTripper.
func (g *guard) RoundTrip(r *http.Request) (*http.Response, error) {
	asked, ok := parse(r)
	if !ok || slices.ContainsFunc(g.rules, asked.isAllowedBy) {
		return g.next.RoundTrip(r)
	}
	g.refused(asked.String())
	if r.Body != nil {
		_ = r.Body.Close()
	}
	body, err := json.Marshal(metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
		Reason: metav1.StatusReasonForbidden, Code: http.StatusForbidden, Message: asked.String() + " was not declared",
	})
	if err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: http.StatusForbidden, Request: r, ContentLength: int64(len(body)),
		Body:   io.NopCloser(bytes.NewReader(body)),
		Header: http.Header{"Content-Type": {"application/json"}}, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}, nil
}

// request is what a rule speaks of.
type request struct {
	verb, group, resource, name string
}

// String reads like a rule.
func (a request) String() string {
	return fmt.Sprintf("%s %s of group %q named %q", a.verb, a.resource, a.group, a.name)
}

// parse reads a request for a resource; the second result is false for any other, such as discovery.
func parse(r *http.Request) (request, bool) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	var asked request
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		asked.group, parts = parts[1], parts[3:]
	default:
		return request{}, false
	}
	// namespaces/NAME/RESOURCE, but not namespaces/NAME/status and the like, which have no more behind them.
	if len(parts) > 2 && parts[0] == "namespaces" && parts[2] != "status" && parts[2] != "finalize" {
		parts = parts[2:]
	}
	asked.resource = parts[0]
	if len(parts) > 1 {
		asked.name = parts[1]
	}
	if len(parts) > 2 {
		asked.resource += "/" + parts[2]
	}
	asked.verb = verbOf(r, asked.name)
	return asked, true
}

func verbOf(r *http.Request, name string) string {
	switch r.Method {
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		if name == "" {
			return "deletecollection"
		}
		return "delete"
	}
	switch watch := r.URL.Query().Get("watch"); {
	case watch == "true" || watch == "1":
		return "watch"
	case name == "":
		return "list"
	default:
		return "get"
	}
}

func (a request) isAllowedBy(rule rbacv1.PolicyRule) bool {
	among := func(list []string, value string) bool {
		return slices.Contains(list, "*") || slices.Contains(list, value)
	}
	_, sub, _ := strings.Cut(a.resource, "/")
	named := among(rule.Resources, a.resource) || sub != "" && slices.Contains(rule.Resources, "*/"+sub)
	return among(rule.Verbs, a.verb) && among(rule.APIGroups, a.group) && named &&
		(len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, a.name))
}
