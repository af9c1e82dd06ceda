package server

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// checks are the health checks over HTTP, each switched by a POST to it with ?ok=true or ?ok=false.
var checks = []string{"healthz", "livez", "readyz", "startupz"}

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.hello)
	mux.HandleFunc("GET /hostname", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, host()) })
	mux.HandleFunc("GET /version", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w,
			os.Getenv("VERSION"))
	})
	mux.HandleFunc("GET /clientip", func(w http.ResponseWriter, r *http.Request) { fmt.Fprintln(w, r.RemoteAddr) })
	mux.HandleFunc("GET /env", environment)
	mux.HandleFunc("GET /headers", headers)
	mux.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) })
	mux.HandleFunc("GET /file", readFile)
	mux.HandleFunc("PUT /file", writeFile)
	mux.HandleFunc("GET /sleep", pause)
	mux.HandleFunc("POST /exit", s.exit)
	mux.HandleFunc("POST /crash", func(w http.ResponseWriter, _ *http.Request) { s.stop(ending{crash: true}) })
	mux.HandleFunc("POST /log", s.log)
	mux.HandleFunc("POST /allocate", s.allocate)
	for _, check := range checks {
		mux.HandleFunc("GET /"+check, func(w http.ResponseWriter, _ *http.Request) { s.answer(w, check) })
		mux.HandleFunc("POST /"+check, func(w http.ResponseWriter, r *http.Request) { s.switchCheck(w, r, check) })
	}
	return mux
}

func host() string {
	name, err := os.Hostname()
	if err != nil {
		return "unknown"
	}
	return name
}

func (s *Server) hello(w http.ResponseWriter, _ *http.Request) {
	fmt.Fprintf(w, "Hello from %s, version %s\n", host(), os.Getenv("VERSION"))
}

// environment prints all variables, or the value of the one that ?name= names.
func environment(w http.ResponseWriter, r *http.Request) {
	if name := r.URL.Query().Get("name"); name != "" {
		value, ok := os.LookupEnv(name)
		if !ok {
			http.Error(w, "no variable "+name, http.StatusNotFound)
			return
		}
		fmt.Fprintln(w, value)
		return
	}
	variables := os.Environ()
	slices.Sort(variables)
	fmt.Fprintln(w, strings.Join(variables, "\n"))
}

func headers(w http.ResponseWriter, r *http.Request) {
	fmt.Fprintln(w, "Host:", r.Host)
	for _, name := range sortedNames(r.Header) {
		fmt.Fprintf(w, "%s: %s\n", name, strings.Join(r.Header[name], ", "))
	}
}

func sortedNames(h http.Header) []string {
	names := make([]string, 0, len(h))
	for name := range h {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func readFile(w http.ResponseWriter, r *http.Request) {
	content, err := os.ReadFile(r.URL.Query().Get("path"))
	if err != nil {
		fileError(w, err)
		return
	}
	_, _ = w.Write(content)
}

func writeFile(w http.ResponseWriter, r *http.Request) {
	content, err := io.ReadAll(r.Body)
	if err == nil {
		err = os.WriteFile(r.URL.Query().Get("path"), content, 0o644)
	}
	if err != nil {
		fileError(w, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func fileError(w http.ResponseWriter, err error) {
	code := http.StatusInternalServerError
	if errors.Is(err, fs.ErrNotExist) {
		code = http.StatusNotFound
	}
	http.Error(w, err.Error(), code)
}

func pause(w http.ResponseWriter, r *http.Request) {
	wait, err := time.ParseDuration(r.URL.Query().Get("for"))
	if err != nil {
		http.Error(w, "for: a duration such as 2s", http.StatusBadRequest)
		return
	}
	select {
	case <-time.After(wait):
		fmt.Fprintln(w, "slept", wait)
	case <-r.Context().Done():
	}
}

func (s *Server) exit(w http.ResponseWriter, r *http.Request) {
	code, err := strconv.Atoi(r.URL.Query().Get("code"))
	if err != nil || code < 0 || code > 255 {
		http.Error(w, "code: an exit status between 0 and 255", http.StatusBadRequest)
		return
	}
	s.stop(ending{code: code})
}

func (s *Server) log(w http.ResponseWriter, r *http.Request) {
	line, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.out.printf("%s", strings.TrimSuffix(string(line), "\n"))
	w.WriteHeader(http.StatusNoContent)
}

// allocate holds ?mib= of touched memory until the process ends, to meet a memory limit.
func (s *Server) allocate(w http.ResponseWriter, r *http.Request) {
	mib, err := strconv.Atoi(r.URL.Query().Get("mib"))
	if err != nil || mib < 0 {
		http.Error(w, "mib: a number", http.StatusBadRequest)
		return
	}
	block := make([]byte, mib<<20)
	for i := 0; i < len(block); i += 4096 {
		block[i] = 1
	}
	s.hold(block)
	fmt.Fprintln(w, "holding", mib, "MiB more")
}

func (s *Server) answer(w http.ResponseWriter, check string) {
	if !s.health.healthy(check, time.Now()) {
		http.Error(w, check+" fails", http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}

func (s *Server) switchCheck(w http.ResponseWriter, r *http.Request, check string) {
	ok, err := strconv.ParseBool(r.URL.Query().Get("ok"))
	if err != nil {
		http.Error(w, "ok: true or false", http.StatusBadRequest)
		return
	}
	s.health.set(check, ok)
	s.out.printf("%s is switched to %t", check, ok)
	w.WriteHeader(http.StatusNoContent)
}
