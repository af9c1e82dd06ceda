package support

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"

	"keelson.dev/cli/internal/mesh"
	"keelson.dev/cli/internal/plan"
	"keelson.dev/cli/internal/redact"
	"keelson.dev/cli/internal/systemd"
)

// logLimit is how much of a log is collected, in bytes from its end.
const logLimit = 4 << 20

// journalLines is how much of a unit's journal is collected, in lines from its end.
const journalLines = "20000"

// pages are what a daemon answers on its status address, by the names that they get in a bundle.
var pages = []struct{ name, path string }{
	{"readyz.txt", "/readyz"},
	{"metrics.txt", "/metrics"},
	{"goroutines.txt", "/debug/pprof/goroutine?debug=1"},
}

// ofDaemons are the files of the processes of the mesh: the log of each, and what it answers if it runs.
func ofDaemons(ctx context.Context, m *mesh.Mesh) []source {
	processes, err := m.Processes(ctx)
	if err != nil {
		return []source{{"daemons", func(context.Context) ([]byte, string, error) { return nil, "", err }}}
	}
	var sources []source
	for _, p := range processes {
		within := "daemons/" + p.Name + "/"
		sources = append(sources, source{within + "log.txt", func(ctx context.Context) ([]byte, string, error) {
			text, note, err := logOf(ctx, p.Log)
			return []byte(redact.Text(text)), note, err
		}})
		if _, isRuntime := plan.NodeOfContainerd(p.Name); isRuntime {
			continue // it answers by its own socket alone
		}
		for _, page := range pages {
			sources = append(sources, source{within + page.name, func(ctx context.Context) ([]byte, string, error) {
				return pageOf(ctx, m, p, page.path)
			}})
		}
	}
	return sources
}

// pageOf gets a page of a daemon of the mesh.
func pageOf(ctx context.Context, m *mesh.Mesh, p mesh.Process, path string) (content []byte, note string, err error) {
	if !p.Alive {
		return nil, "", fmt.Errorf("%s does not run", p.Name)
	}
	trust, err := m.TLSClient()
	if err != nil {
		return nil, "", err
	}
	return fetch(ctx, trust, "https://"+m.StatusAddress(p.Name)+path)
}

// logOf reads the end of a log, which is a file, or what a command shows of the journal.
func logOf(ctx context.Context, log string) (text, note string, err error) {
	unit, ofJournal := strings.CutPrefix(log, systemd.ShowJournal)
	if !ofJournal {
		return tail(log, logLimit)
	}
	text, err = systemd.Journal(ctx, unit, "--lines="+journalLines, "--output=short-iso-precise")
	if err != nil {
		return text, "", err
	}
	if cut := len(text) - logLimit; cut > 0 {
		return text[cut:], fmt.Sprintf("the last %d bytes", logLimit), nil
	}
	return text, "", nil
}

// fetch gets a page of a daemon. A page that says that the daemon is not ready is no error.
func fetch(ctx context.Context, trust *tls.Config, url string) (content []byte, note string, err error) {
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: trust, DisableKeepAlives: true}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, "", err
	}
	answer, err := client.Do(request)
	if err != nil {
		return nil, "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, sizeLimit))
	if err != nil {
		return nil, "", fmt.Errorf("reading %s: %w", url, err)
	}
	if answer.StatusCode == http.StatusForbidden || answer.StatusCode == http.StatusNotFound {
		return nil, "", fmt.Errorf("%s answers %s", url, answer.Status)
	}
	if answer.StatusCode != http.StatusOK {
		note = answer.Status
	}
	return []byte(redact.Text(string(body))), note, nil
}
