// Package servertest starts the real apiserver in a temporary directory for
// tests, with users who authenticate by token.
package servertest

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"
	"go.uber.org/zap/zaptest/observer"
	"k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"

	"keelson.dev/kit/logging"
	"keelson.dev/services/apiserver/inproc"
)

// Admin may do everything; every other name is a user without any rights of its own.
const Admin = "admin"

// users are who the token file knows; each one's token is "token-" and the name.
var users = []string{Admin, "ann", "bob"}

// Server is a running apiserver.
type Server struct {
	*inproc.Handle
	// Client has all rights.
	Client kubernetes.Interface
}

// libraryErrors are the error lines of the libraries' log, which all servers of the process share. It is captured
// before any goroutine of a library can read the logger of the process.
var libraryErrors = captureErrors()

// captureErrors keeps the libraries' own log out of the tests' output.
func captureErrors() *observer.ObservedLogs {
	core, lines := observer.New(zap.ErrorLevel)
	logging.Capture(zap.New(core))
	return lines
}

// LibraryErrors returns what the libraries have logged at level error since the process began.
func LibraryErrors() []observer.LoggedEntry { return libraryErrors.All() }

// Start runs an apiserver until the test ends.
func Start(t testing.TB, change ...func(*inproc.Config)) *Server {
	t.Helper()
	return StartIn(t, t.TempDir(), change...)
}

// StartIn is Start with everything kept in dir.
func StartIn(t testing.TB, dir string, change ...func(*inproc.Config)) *Server {
	t.Helper()
	config := NewConfig(t, dir)
	for _, c := range change {
		c(config)
	}
	handle, err := inproc.Start(t.Context(), config, zaptest.NewLogger(t, zaptest.Level(zap.ErrorLevel)))
	if err != nil {
		t.Fatalf("starting the apiserver: %v", err)
	}
	t.Cleanup(func() {
		if err := handle.Stop(); err != nil {
			t.Errorf("stopping the apiserver: %v", err)
		}
	})
	s := &Server{Handle: handle}
	s.Client = s.As(t, Admin)
	return s
}

// NewConfig returns settings for a server on a free loopback port that keeps everything in dir.
func NewConfig(t testing.TB, dir string) *inproc.Config {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("finding a free port: %v", err)
	}
	config := inproc.NewConfig()
	config.Listener = listener
	config.DataDir = filepath.Join(dir, "data")
	config.TokenAuthFile = filepath.Join(dir, "tokens.csv")
	config.ServiceAccountSigningKeyFile = filepath.Join(dir, "sa.key")
	writeFile(t, config.TokenAuthFile, tokenFile())
	writeFile(t, config.ServiceAccountSigningKeyFile, string(encoded("EC PRIVATE KEY", marshalled(t, newSigner(t)))))
	return config
}

// ConfigAs is a connection of the named user.
func (s *Server) ConfigAs(name string) *restclient.Config {
	return ConfigAs(s.Address(), name)
}

// ConfigAs is a connection to address of the named user.
func ConfigAs(address, name string) *restclient.Config {
	return &restclient.Config{
		Host:            "https://" + address,
		BearerToken:     "token-" + name,
		TLSClientConfig: restclient.TLSClientConfig{Insecure: true},
		QPS:             -1,
	}
}

// As is a client of the named user.
func (s *Server) As(t testing.TB, name string) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(s.ConfigAs(name))
	if err != nil {
		t.Fatalf("making a client: %v", err)
	}
	return client
}

func tokenFile() string {
	var lines strings.Builder
	for _, name := range users {
		groups := ""
		if name == Admin {
			groups = "system:masters"
		}
		fmt.Fprintf(&lines, "token-%s,%s,uid-%s,%q\n", name, name, name, groups)
	}
	return lines.String()
}

func writeFile(t testing.TB, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatalf("writing %s: %v", path, err)
	}
}
