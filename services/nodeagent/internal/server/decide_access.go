package server

import (
	"strings"

	"keelson.dev/services/nodeagent/internal/review"
)

// verbs are the API's of HTTP's methods; the node API knows no others.
var verbs = map[string]string{"GET": "get", "HEAD": "get", "POST": "create", "PUT": "update", "PATCH": "patch",
	"DELETE": "delete"}

// subresources of nodes are asked for one after the other, by the first part of the path: each allows the request.
var subresources = map[string][]string{
	"metrics":     {"metrics"},
	"stats":       {"stats"},
	"logs":        {"log"},
	"pods":        {"pods", "proxy"},
	"runningpods": {"pods", "proxy"},
	"healthz":     {"healthz", "proxy"},
	"configz":     {"configz", "proxy"},
}

// acting are the sessions: they let their clients act in a container, by GET as well: who may read only gets none.
var acting = map[string]bool{"exec": true, "attach": true, "portForward": true}

// accessesOf are those of which a request needs one, as the API's rules name them; none for a method that nothing here
// has.
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

// bearer is the token of an Authorization header, "" if it has none.
func bearer(header string) string {
	scheme, token, _ := strings.Cut(strings.TrimSpace(header), " ")
	if token = strings.TrimSpace(token); !strings.EqualFold(scheme, "Bearer") || strings.Contains(token, " ") {
		return ""
	}
	return token
}
