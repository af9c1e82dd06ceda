package vm

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"keelson.dev/test/vm/wire"
)

// runTimeout bounds one command: everything takes ten times as long inside.
const runTimeout = 12 * time.Minute

// askInterval leaves the machine time between two checks.
const askInterval = 2 * time.Second

// Result is what a command inside printed and how it ended.
type Result struct {
	Output string
	Code   int
}

// Run runs a command inside and returns what it printed. The test fails if the command does.
func (m *Machine) Run(t testing.TB, argv ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), runTimeout)
	defer cancel()
	result, err := m.Try(ctx, "", argv...)
	if err != nil || result.Code != 0 {
		t.Fatalf("%s: %s: status %d, %v\n%s", m.Name, strings.Join(argv, " "), result.Code, err, result.Output)
	}
	return result.Output
}

// Shell runs a line of shell inside and returns what it printed, without the last line break.
func (m *Machine) Shell(t testing.TB, line string) string {
	t.Helper()
	return strings.TrimSuffix(m.Run(t, "sh", "-ec", line), "\n")
}

// Await waits until a line of shell, which may fail meanwhile, prints the wanted text.
func (m *Machine) Await(t testing.TB, line, want string, patience time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for started, got := time.Now(), ""; ; {
		if now := m.result(ctx, line); ctx.Err() == nil {
			got = now
		}
		if got == want {
			t.Logf("%s prints %q after %v", m.Name, want, time.Since(started).Round(time.Second))
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: after %v, %s prints\n%s\nwant\n%s", m.Name, patience, line, got, want)
		case <-time.After(askInterval):
		}
	}
}

// Try runs a command inside. An error means that the machine gave no answer.
func (m *Machine) Try(ctx context.Context, stdin string, argv ...string) (Result, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost,
		m.url(wire.RunPath)+"?"+url.Values{wire.ArgumentKey: argv}.Encode(), strings.NewReader(stdin))
	if err != nil {
		return Result{}, fmt.Errorf("asking %s: %w", m.Name, err)
	}
	output, trailer, err := m.ask(request)
	if err != nil {
		return Result{Output: output}, err
	}
	code, err := strconv.Atoi(trailer.Get(wire.CodeTrailer))
	if err != nil {
		return Result{Output: output}, fmt.Errorf("asking %s: it does not say how the command ended", m.Name)
	}
	return Result{Output: output, Code: code}, nil
}

// bootID returns the ID of this boot of the machine.
func (m *Machine) bootID(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, m.url(wire.BootPath), nil)
	if err != nil {
		return "", fmt.Errorf("asking %s: %w", m.Name, err)
	}
	id, _, err := m.ask(request)
	return id, err
}

func (m *Machine) url(path string) string {
	return fmt.Sprintf("http://127.0.0.1:%d%s", m.port, path)
}

// ask sends a request over a connection of its own: those of an earlier start lead nowhere.
func (m *Machine) ask(request *http.Request) (string, http.Header, error) {
	transport := &http.Transport{DisableKeepAlives: true}
	defer transport.CloseIdleConnections()
	answer, err := transport.RoundTrip(request)
	if err != nil {
		return "", nil, fmt.Errorf("asking %s: %w", m.Name, err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return string(body), nil, fmt.Errorf("reading the answer of %s: %w", m.Name, err)
	}
	if answer.StatusCode != http.StatusOK {
		return "", nil, fmt.Errorf("asking %s: %s: %s", m.Name, answer.Status, body)
	}
	return string(body), answer.Trailer, nil
}

// result is what a line of shell prints, however it ends: no answer is an answer too.
func (m *Machine) result(ctx context.Context, line string) string {
	result, err := m.Try(ctx, "", "sh", "-c", line)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(result.Output)
}
