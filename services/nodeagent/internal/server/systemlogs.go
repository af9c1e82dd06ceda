package server

import (
	"errors"
	"fmt"
	"html"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"

	"keelson.dev/services/nodeagent/internal/plainfile"
)

// systemLogs shows the logs of the machine, read-only: a folder as a list of links, a file as it is. It follows no
// symbolic link: a container that may write there would choose what is shown.
func (s *Server) systemLogs(w http.ResponseWriter, r *http.Request) error {
	if s.config.SystemLogDir == "" {
		return &statusError{http.StatusMethodNotAllowed, "logs endpoint is disabled."}
	}
	name := r.PathValue("path")
	none := notFound("%s is no file or folder of %s", name, s.config.SystemLogDir)
	if local := strings.Trim(name, "/"); local != "" && !filepath.IsLocal(local) || strings.ContainsRune(name, 0) {
		return none
	}
	root, at := plainfile.Root(s.config.SystemLogDir), filepath.Join(s.config.SystemLogDir, name)
	file, err := root.Open(at)
	if err == nil {
		defer file.Close()
		return serveLog(w, r, file)
	}
	folder, asFolder := root.Folder(at)
	switch {
	case asFolder == nil:
		defer folder.Close()
		return serveFolder(w, r, folder)
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, plainfile.ErrNotPlain):
		return none
	}
	return fmt.Errorf("reading %s: %w", name, err)
}

// serveLog sends a file as text, regardless of its contents: otherwise authors of logs could have browsers run
// them.
func serveLog(w http.ResponseWriter, r *http.Request, file *os.File) error {
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("reading a log: %w", err)
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	http.ServeContent(w, r, "", info.ModTime(), file)
	return nil
}

// serveFolder lists a folder by relative links, so that they also work behind the API server's proxy.
func serveFolder(w http.ResponseWriter, r *http.Request, folder *os.Root) error {
	if !strings.HasSuffix(r.URL.Path, "/") {
		w.Header().Set("Location", link(path.Base(r.URL.Path)+"/"))
		w.WriteHeader(http.StatusMovedPermanently)
		return nil
	}
	entries, err := fs.ReadDir(folder.FS(), ".")
	if err != nil {
		return fmt.Errorf("listing a folder of logs: %w", err)
	}
	var page strings.Builder
	page.WriteString("<!doctype html>\n<pre>\n")
	for _, entry := range entries {
		name := entry.Name()
		if entry.IsDir() {
			name += "/"
		}
		fmt.Fprintf(&page, "<a href=\"%s\">%s</a>\n", link(name), html.EscapeString(name))
	}
	page.WriteString("</pre>\n")
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, err = w.Write([]byte(page.String()))
	return err
}

// link is a relative reference to a name, which may contain any character.
func link(name string) string { return html.EscapeString((&url.URL{Path: name}).String()) }
