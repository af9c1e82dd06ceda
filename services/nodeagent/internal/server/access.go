package server

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"

	"keelson.dev/services/nodeagent/internal/review"
)

// Users that may do everything by their certificates, whether the API server answers or not.
const (
	apiserverUser = "system:keelson:apiserver"
	mastersGroup  = "system:masters"
)

// authenticatedGroup is the group of all users that the cluster knows; a certificate does not name it.
const authenticatedGroup = "system:authenticated"

// authorize passes on requests whose users may do what they ask for.
func (s *Server) authorize(next http.Handler) http.Handler {
	return answer(func(w http.ResponseWriter, r *http.Request) error {
		user, err := s.admit(r)
		if err != nil {
			return err
		}
		s.connections.Known(r, user)
		next.ServeHTTP(w, r)
		return nil
	})
}

// admit returns the name of the user, or why the request is rejected.
func (s *Server) admit(r *http.Request) (string, error) {
	token := bearer(r.Header.Get("Authorization"))
	r.Header.Del("Authorization") // the runtime gets a session's request
	user, ok := certified(r.TLS)
	if ok && (user.Username == apiserverUser || slices.Contains(user.Groups, mastersGroup)) {
		return user.Username, nil
	}
	from, _ := netip.ParseAddrPort(r.RemoteAddr)
	if !ok {
		if token == "" {
			return "", &statusError{http.StatusUnauthorized, "a client certificate or a bearer token is required"}
		}
		var err error
		if user, err = s.config.Reviews.User(r.Context(), from.Addr(), token); err != nil {
			return "", unreviewed(err)
		}
	}
	accesses := accessesOf(r.Method, r.URL.Path)
	if len(accesses) == 0 {
		return "", &statusError{http.StatusMethodNotAllowed, fmt.Sprintf("method %q is none of the node API",
			r.Method)}
	}
	var wanted []string
	for _, access := range accesses {
		allowed, err := s.config.Reviews.Allowed(r.Context(), from.Addr(), user, access)
		if err != nil {
			return "", unreviewed(err)
		}
		if allowed {
			return user.Username, nil
		}
		wanted = append(wanted, "nodes/"+access.Subresource)
	}
	return "", &statusError{http.StatusForbidden, fmt.Sprintf("user %q may not %s %s of this node", user.Username,
		accesses[0].Verb, strings.Join(wanted, " or "))}
}

// certified returns the user of the certificate that TLS has verified.
func certified(state *tls.ConnectionState) (authenticationv1.UserInfo, bool) {
	if state == nil || len(state.VerifiedChains) == 0 {
		return authenticationv1.UserInfo{}, false
	}
	subject := state.VerifiedChains[0][0].Subject
	return authenticationv1.UserInfo{Username: subject.CommonName,
		Groups: append(slices.Clone(subject.Organization), authenticatedGroup)}, subject.CommonName != ""
}

// unreviewed is the error that a client gets if a review does not admit it: it does not reveal where the API is.
func unreviewed(err error) error {
	switch {
	case errors.Is(err, review.ErrUnknown):
		return &statusError{http.StatusUnauthorized, err.Error()}
	case errors.Is(err, review.ErrTooOften):
		return &statusError{http.StatusTooManyRequests, err.Error()}
	}
	return &statusError{http.StatusServiceUnavailable,
		"this node cannot ask the API server who may use the node API: try again"}
}
