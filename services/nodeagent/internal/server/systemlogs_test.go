package server

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"keelson.dev/services/nodeagent/internal/plainfile/plainfiletest"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestSystemLogs(t *testing.T) {
	n := newNode(t)
	write(t, filepath.Join(n.systemLogs, "syslog"), "<script>one</script>\n")
	write(t, filepath.Join(n.systemLogs, "pods", "a b", "x?<y>.log"), "two\n")
	write(t, filepath.Join(filepath.Dir(n.systemLogs), "outside"), "secret")
	const escaped = `x%3F%3Cy%3E.log`
	for _, row := range []struct {
		path string
		code int
		body string
	}{
		{"/logs", 307, "-> /logs/"},
		{"/logs/", 200, "<!doctype html>\n<pre>\n<a href=\"pods/\">pods/</a>\n<a href=\"syslog\">syslog</a>\n</pre>\n"},
		{"/logs/syslog", 200, "<script>one</script>\n"},
		{"/logs/pods", 301, "-> pods/"},
		{"/logs/pods/", 200, "<!doctype html>\n<pre>\n<a href=\"a%20b/\">a b/</a>\n</pre>\n"},
		{"/logs/pods/a%20b", 301, "-> a%20b/"},
		{"/logs/pods/a%20b/", 200, "<!doctype html>\n<pre>\n<a href=\"" + escaped +
			"\">x?&lt;y&gt;.log</a>\n</pre>\n"},
		{"/logs/pods/a%20b/" + escaped, 200, "two\n"},
		{"/logs/none", 404, "none is no file or folder of"},
		{"/logs/syslog/none", 404, "syslog/none is no file or folder of"},
		{"/logs/..%2foutside", 404, "../outside is no file or folder of"},
		{"/logs/pods/..%2f..%2foutside", 404, "is no file or folder of"},
		{"/logs/%2fetc/passwd", 404, "is no file or folder of"},
		{"/logs/a%00b", 404, "is no file or folder of"},
	} {
		code, body, err := n.get(row.path)
		if code != row.code || !strings.Contains(body, row.body) || code == 200 && body != row.body || err != nil {
			t.Errorf("%s: %d %q, %v, want %d %q", row.path, code, body, err, row.code, row.body)
		}
	}
	if code, body, err := n.ask(http.MethodGet, "/logs/syslog", http.Header{"Range": {"bytes=8-10"}},
		n.client(apiserverUser)); code != 206 || body != "one" {
		t.Errorf("a part: %d %q, %v", code, body, err)
	}
	if code, body, err := n.ask(http.MethodPost, "/logs/syslog", nil, n.client(apiserverUser)); code != 405 {
		t.Errorf("writing: %d %q, %v", code, body, err)
	}
}

// Browsers do not run a log as a page, and no log is shown where that is switched off.
func TestSystemLogsAreText(t *testing.T) {
	n := newNode(t)
	write(t, filepath.Join(n.systemLogs, "syslog.html"), "<script>one</script>\n")
	recorder := serveSystemLogs(t, &Server{config: Config{SystemLogDir: n.systemLogs}}, "syslog.html")
	if recorder.Header().Get("Content-Type") != "text/plain; charset=utf-8" ||
		recorder.Header().Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("headers: %v", recorder.Header())
	}
	off := serveSystemLogs(t, &Server{}, "syslog.html")
	if off.Code != http.StatusMethodNotAllowed || off.Body.String() != "logs endpoint is disabled.\n" {
		t.Errorf("switched off: %d %s", off.Code, off.Body)
	}
}

func serveSystemLogs(t *testing.T, s *Server, path string) *httptest.ResponseRecorder {
	t.Helper()
	request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/logs/"+path, http.NoBody)
	request.SetPathValue("path", path)
	recorder := httptest.NewRecorder()
	answer(s.systemLogs).ServeHTTP(recorder, request)
	return recorder
}

// If something else replaces a log or a folder on the way, nothing outside is shown, and no request blocks.
func TestSystemLogsOfPlainFilesOnly(t *testing.T) {
	for name, lay := range plainfiletest.Traps {
		n := newNode(t)
		lay(t, filepath.Join(n.systemLogs, "trap"))
		for _, path := range []string{"/logs/trap", "/logs/trap/", "/logs/trap/x"} {
			code, body, err := n.get(path)
			folder := code == http.StatusMovedPermanently || code == http.StatusOK && strings.Contains(body, "<pre>")
			if code != http.StatusNotFound && !folder || strings.Contains(body, plainfiletest.Secret) || err != nil {
				t.Errorf("%s: %s: %d %q, %v", name, path, code, body, err)
			}
		}
	}
	n := newNode(t)
	outside := t.TempDir()
	write(t, filepath.Join(outside, "f"), "secret")
	if err := os.Symlink(outside, filepath.Join(n.systemLogs, "link")); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/logs/link", "/logs/link/", "/logs/link/f"} {
		if code, body, err := n.get(path); code != http.StatusNotFound || err != nil {
			t.Errorf("%s: %d %q, %v", path, code, body, err)
		}
	}
}
