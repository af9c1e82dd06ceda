package telemetry

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// Check says what is wrong, or nil. It must answer at once.
type Check func() error

// Health is a set of named checks behind one path. The zero value is ready and passes. It is safe for concurrent use.
type Health struct {
	mu     sync.RWMutex // guards checks
	checks map[string]Check
}

// Add sets the check of that name and replaces an earlier one.
func (h *Health) Add(name string, check Check) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.checks == nil {
		h.checks = map[string]Check{}
	}
	h.checks[name] = check
}

// Failures returns "name: reason" of every check that fails, sorted by name.
func (h *Health) Failures() []string {
	var failed []string
	for name, check := range h.snapshot() {
		if err := check(); err != nil {
			failed = append(failed, fmt.Sprintf("%s: %v", name, err))
		}
	}
	slices.Sort(failed)
	return failed
}

// ServeHTTP answers 200 "ok", or 503 and a line for each check that fails.
func (h *Health) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	failed := h.Failures()
	if len(failed) == 0 {
		fmt.Fprint(w, "ok")
		return
	}
	w.WriteHeader(http.StatusServiceUnavailable)
	fmt.Fprintln(w, strings.Join(failed, "\n"))
}

// snapshot lets checks run without the lock, so that a slow one never blocks Add.
func (h *Health) snapshot() map[string]Check {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return maps.Clone(h.checks)
}
