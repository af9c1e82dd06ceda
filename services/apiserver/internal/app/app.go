// Package app runs an apiserver as a daemon (daemon.go), and tells when it is ready (app.go).
package app

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"go.uber.org/zap"
	restclient "k8s.io/client-go/rest"

	"keelson.dev/kit/daemon"
	"keelson.dev/services/apiserver/internal/server"
)

// readyInterval is how often Start asks whether the server is ready.
const readyInterval = 20 * time.Millisecond

// Config are the settings; NewConfig gives the defaults.
type Config = server.Options

// NewConfig returns the defaults of all settings.
func NewConfig() *Config { return server.NewOptions() }

// Handle is a running apiserver. Once it has stopped its data directory is free.
type Handle struct {
	*daemon.Handle
	server *server.Server
}

// Start runs an apiserver until ctx ends or the handle is stopped. It returns when the server is ready, or with what
// kept it from becoming so.
func Start(ctx context.Context, config *Config, log *zap.Logger) (*Handle, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	s, err := server.New(ctx, config, log)
	if err != nil {
		return nil, err
	}
	h := &Handle{daemon.Go(ctx, s.Run), s}
	if err := h.waitReady(ctx, config.Progress); err != nil {
		_ = h.Stop()
		return nil, err
	}
	return h, nil
}

// Address is HOST:PORT that the server listens on.
func (h *Handle) Address() string { return h.server.Address() }

// AdminConfig is a connection with all rights. It is valid in this process only.
func (h *Handle) AdminConfig() *restclient.Config { return h.server.LoopbackConfig() }

// waitReady returns when the server is ready, and tells progress which of its checks it waits for.
func (h *Handle) waitReady(ctx context.Context, progress func(string)) error {
	client, err := restclient.HTTPClientFor(h.AdminConfig())
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	ticker := time.NewTicker(readyInterval)
	defer ticker.Stop()
	for {
		waiting, asked := failingChecks(ctx, client, h.AdminConfig().Host)
		if asked && len(waiting) == 0 {
			return nil
		}
		if progress != nil && asked {
			progress("waiting for " + strings.Join(waiting, ", "))
		}
		select {
		case <-h.Done():
			if err := h.Wait(); err != nil {
				return err
			}
			return fmt.Errorf("the server stopped before it was ready: %w", context.Cause(ctx))
		case <-ticker.C:
		}
	}
}

// failingChecks are the names of the readiness checks that fail; asked is false when there was no answer.
func failingChecks(ctx context.Context, client *http.Client, host string) (names []string, asked bool) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, host+"/readyz?verbose", nil)
	if err != nil {
		return nil, false
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, false
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode == http.StatusOK {
		return nil, true
	}
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		if line, failed := strings.CutPrefix(lines.Text(), "[-]"); failed {
			name, _, _ := strings.Cut(line, " ")
			names = append(names, name)
		}
	}
	return names, len(names) > 0
}
