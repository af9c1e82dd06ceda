// Package console serves a read-only page of a mesh to the browser of the user who started it, on a loopback address.
//
// The page asks with a token that only this user was told. Everything it shows is read with the credentials of one
// kubeconfig, and there is no way to write.
package console

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"k8s.io/client-go/kubernetes"

	"keelson.dev/cli/internal/console/feed"
	"keelson.dev/cli/internal/console/page"
	"keelson.dev/cli/internal/view"
	"keelson.dev/kit/connections"
)

// Config is what a console shows.
type Config struct {
	// Client has the rights of the console.
	Client kubernetes.Interface
	// Namespace is the only one that is shown; empty for all.
	Namespace string
	// Daemons asks the daemons of the mesh, as view.Daemons does.
	Daemons func(ctx context.Context) ([]view.Daemon, []view.Leader, string)
	// Explain explains an object, as view.Explain does.
	Explain func(ctx context.Context, kind, namespace, name string) (view.Writer, error)
}

// Limits of the whole console. One user looks at few pages.
const (
	mostStreams  = 32
	mostLogs     = 16
	mostExplains = 4
)

// bounds are how many connections there may be. Those without the token, which any user of this machine can open, do
// not keep the pages out.
var bounds = connections.Limits{Unknown: 64, PerAddress: 64, Known: 128, PerClient: 128}

// Console answers the pages.
type Console struct {
	config Config
	hub    *feed.Hub
	token  string
	// Each has as many places as there may be requests of its kind.
	streams, logs, explains places
}

// New returns a console that answers those who know the token. Its watches end with ctx.
func New(ctx context.Context, config Config, token string) *Console {
	c := &Console{config: config, hub: feed.NewHub(ctx), token: token, streams: make(places, mostStreams),
		logs: make(places, mostLogs), explains: make(places, mostExplains)}
	addTopics(c.hub, &config)
	return c
}

// Handler returns what answers requests. known is called with each request that comes with the token.
func (c *Console) Handler(known func(*http.Request)) http.Handler {
	api := http.NewServeMux()
	api.HandleFunc("GET /api/about", c.about)
	api.HandleFunc("GET /api/stream", c.stream)
	api.HandleFunc("GET /api/explain", c.explain)
	api.HandleFunc("GET /api/logs", c.log)
	all := http.NewServeMux()
	all.Handle("/api/", c.authenticated(known, api))
	all.Handle("/", http.FileServerFS(page.Files))
	return guarded(all)
}

// Listen listens on a loopback address of this machine, on IPv6 only if it has no IPv4; port 0 is a free one.
func Listen(ctx context.Context, port int) (net.Listener, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err == nil {
		return listener, nil
	}
	if other, err := config.Listen(ctx, "tcp", fmt.Sprintf("[::1]:%d", port)); err == nil {
		return other, nil
	}
	return nil, fmt.Errorf("listening on the loopback address: %w", err)
}

// Serve answers on the listener until ctx, which is that of New, ends. That is no error.
func (c *Console) Serve(ctx context.Context, listener net.Listener) error {
	bounded := connections.Bound(listener, bounds)
	known := func(r *http.Request) { bounded.Known(r, "the pages") }
	server := &http.Server{Handler: c.Handler(known), ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute,
		MaxHeaderBytes: 16 << 10}
	// Pages keep their streams open, and nothing that breaks off is lost: there is no end to wait for.
	end := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer end()
	if err := server.Serve(bounded); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving the console: %w", err)
	}
	c.hub.Wait()
	return nil
}

// places are taken by requests; a request for which there is none is refused.
type places chan struct{}

// take takes a place, or answers that there is none.
func (p places) take(w http.ResponseWriter) (free func(), taken bool) {
	select {
	case p <- struct{}{}:
		return func() { <-p }, true
	default:
		w.Header().Set("Retry-After", "5")
		refuse(w, http.StatusServiceUnavailable, "too many pages ask at the same time: close some")
		return nil, false
	}
}
