package server

import (
	"strings"

	"keelson.dev/services/nodeagent/internal/review"
)

// verbs maps HTTP's methods to the API's verbs; the node API knows no others.
var verbs = map[string]string{"GET": "get", "HEAD": "get", "POST": "create", "PUT": "update", "PATCH": "patch",
	"DELETE": "delete"}

// subresources maps the first part of a path to the subresources of nodes that are checked in turn: any of them
// allows the request.
var subresources = map[string][]string{
	"metrics":     {"metrics"},
	"stats":       {"stats"},
	"logs":        {"log"},
	"pods":        {"pods", "proxy"},
	"runningpods": {"pods", "proxy"},
	"healthz":     {"healthz", "proxy"},
	"configz":     {"configz", "proxy"},
}

// acting are the sessions, which let their clients act in a container, also by GET: a user who may only read gets
// none.
var acting = map[string]bool{"exec": true, "attach": true, "portForward": true}

// accessesOf returns the accesses of which a request needs one, as the API's rules name them; none for an unknown
// method.
func accessesOf(method, path string) []review.Access {
	verb, ok := verbs[method]
	if !ok {
		return nil
	}
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	if acting[first] {
		verb = verbs["POST"]
	}
	of, ok := subresources[first]
	if !ok {
		of = []string{"proxy"}
	}
	all := make([]review.Access, 0, len(of))
	for _, subresource := range of {
		all = append(all, review.Access{Verb: verb, Subresource: subresource})
	}
	return all
}

// bearer returns the token of an Authorization header; "" if it has none.
func bearer(header string) string {
	scheme, token, _ := strings.Cut(strings.TrimSpace(header), " ")
	if token = strings.TrimSpace(token); !strings.EqualFold(scheme, "Bearer") || strings.Contains(token, " ") {
		return ""
	}
	return token
}
