package console

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// headers are those of every answer. The page runs only its own scripts, talks only to its own server, and is shown in
// no other page.
var headers = map[string]string{
	"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; " +
		"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
		"require-trusted-types-for 'script'; trusted-types 'none'",
	"Cross-Origin-Opener-Policy":   "same-origin",
	"Cross-Origin-Resource-Policy": "same-origin",
	"Cross-Origin-Embedder-Policy": "require-corp",
	"Referrer-Policy":              "no-referrer",
	"X-Content-Type-Options":       "nosniff",
	"X-Frame-Options":              "DENY",
	"Cache-Control":                "no-store",
}

// NewToken returns a token that nobody can guess.
func NewToken() string { return rand.Text() }

// guarded answers only GET requests for the console itself, in the name of its own page.
//
// A page of another site whose name leads to the loopback address says that name as host. One that asks for the
// loopback address itself is told apart by Sec-Fetch-Site, where the browser sends it; without the token it gets the
// static files and nothing else.
func guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range headers {
			w.Header().Set(name, value)
		}
		switch {
		case !isLoopback(r.Host):
			refuse(w, http.StatusMisdirectedRequest, "the console answers for the loopback address alone")
		case r.Method != http.MethodGet:
			w.Header().Set("Allow", http.MethodGet)
			refuse(w, http.StatusMethodNotAllowed, "the console only reads")
		case isForeign(r):
			refuse(w, http.StatusForbidden, "the console answers no other site")
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// isLoopback reports whether a host names this machine itself. Its port may be another where it is forwarded.
func isLoopback(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = strings.Trim(hostport, "[]")
	}
	if host == "localhost" {
		return true
	}
	address, err := netip.ParseAddr(host)
	return err == nil && address.IsLoopback()
}

// isForeign reports whether a page of another site asks for what is not meant to be opened by a link.
func isForeign(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
		return false
	}
	return r.Header.Get("Sec-Fetch-Mode") != "navigate" || strings.HasPrefix(r.URL.Path, "/api/")
}

// authenticated answers only those who send the token. It is no cookie: browsers send the cookies of a host to each of
// its ports, and so to the servers of other users of this machine.
func (c *Console) authenticated(known func(*http.Request), next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !bearer || subtle.ConstantTimeCompare([]byte(token), []byte(c.token)) != 1 {
			refuse(w, http.StatusUnauthorized, "the token is missing or of another console: "+
				"open the address that keel console has printed")
			return
		}
		known(r)
		next.ServeHTTP(w, r)
	})
}

// refuse answers with a sentence.
func refuse(w http.ResponseWriter, status int, why string) {
	answer(w, status, map[string]string{"problem": why})
}

// answer writes what into an answer, as JSON.
func answer(w http.ResponseWriter, status int, what any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(what) // a page that has gone needs no answer
}
