package servertest_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/services/apiserver/inproc"
	"keelson.dev/services/apiserver/internal/servertest"
)

// TestRefusedStarts: each wrong setting ends the start with one line that names it.
func TestRefusedStarts(t *testing.T) {
	running := servertest.Start(t)
	taken := servertest.NewConfig(t, t.TempDir())
	if err := taken.Listener.Close(); err != nil {
		t.Fatal(err)
	}
	rows := []struct {
		name   string
		change func(t *testing.T, c *inproc.Config)
		want   string
	}{
		{"port in use", func(_ *testing.T, c *inproc.Config) {
			c.Listener, c.BindAddress, c.SecurePort = nil, "127.0.0.1", portOf(running.Address())
		}, "--secure-port: "},
		{"directory of somebody else", func(t *testing.T, c *inproc.Config) {
			if err := os.Mkdir(c.DataDir, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Chown(c.DataDir, 12345, -1); err != nil {
				t.Fatal(err)
			}
		}, "belongs to user id 12345"},
		{"clean-up of tokens within a day", func(_ *testing.T, c *inproc.Config) {
			c.LegacyTokenCleanUpPeriod = 24*time.Hour - time.Second
		}, "--legacy-service-account-token-clean-up-period: 23h59m59s is less than 24h0m0s"},
		{"directory is a file", func(t *testing.T, c *inproc.Config) {
			if err := os.WriteFile(c.DataDir, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}, "is not a directory"},
		{"missing file", func(_ *testing.T, c *inproc.Config) { c.ClientCAFile = "/nowhere/ca.crt" },
			"--client-ca-file: "},
		{"key without certificate", func(_ *testing.T, c *inproc.Config) { c.TLSPrivateKeyFile = c.TokenAuthFile },
			"--tls-cert-file: needs"},
		{"not a certificate", func(_ *testing.T, c *inproc.Config) { c.ClientCAFile = c.TokenAuthFile },
			"--client-ca-file: "},
		{"not a key", func(_ *testing.T, c *inproc.Config) { c.ServiceAccountSigningKeyFile = c.TokenAuthFile },
			"--service-account-signing-key-file: "},
		{"not a range", func(_ *testing.T, c *inproc.Config) { c.ServiceClusterIPRange = "10.96.0.1" },
			"--service-cluster-ip-range: "},
		{"no file of authentication", func(_ *testing.T, c *inproc.Config) {
			c.Authentication.ConfigFile = "/nowhere/a.yaml"
		}, "--authentication-config: stat /nowhere/a.yaml: no such file or directory"},
		{"another file of authentication", func(_ *testing.T, c *inproc.Config) {
			c.Authentication.ConfigFile = c.TokenAuthFile
		}, "tokens.csv: it is no YAML object of the kind AuthenticationConfiguration"},
		{"another file of authorization", func(_ *testing.T, c *inproc.Config) {
			c.Authorization.ConfigFile = c.TokenAuthFile
		}, "tokens.csv: it is no YAML object of the kind AuthorizationConfiguration"},
		{"no kubeconfig of a token webhook", func(_ *testing.T, c *inproc.Config) {
			c.TokenWebhook.ConfigFile = c.TokenAuthFile
		}, "--authentication-token-webhook-config-file: "},
		{"no kubeconfig of an authorization webhook", func(_ *testing.T, c *inproc.Config) {
			c.Authorization.Modes = append(c.Authorization.Modes, "Webhook")
			c.Authorization.Webhook.ConfigFile = c.TokenAuthFile
		}, "--authorization-webhook-config-file: authorizers[2]: "},
		{"proxies without headers", func(_ *testing.T, c *inproc.Config) {
			c.Proxies.ClientCAFile = c.TokenAuthFile
		}, "--requestheader-client-ca-file: needs --requestheader-username-headers, and the reverse"},
		{"headers without proxies", func(_ *testing.T, c *inproc.Config) {
			c.Proxies.UsernameHeaders = []string{"X-Remote-User"}
		}, "--requestheader-client-ca-file: needs --requestheader-username-headers, and the reverse"},
		{"proxies of no authority", func(_ *testing.T, c *inproc.Config) {
			c.Proxies.ClientCAFile, c.Proxies.UsernameHeaders = c.TokenAuthFile, []string{"X-Remote-User"}
		}, "--requestheader-client-ca-file: "},
		{"not an address", func(_ *testing.T, c *inproc.Config) { c.BindAddress = "localhost" }, "--bind-address: "},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			config := servertest.NewConfig(t, t.TempDir())
			row.change(t, config)
			handle, err := inproc.Start(t.Context(), config, zap.NewNop())
			if err == nil {
				t.Errorf("started: %v", handle.Stop())
				return
			}
			if !strings.Contains(err.Error(), row.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %q, want one line with %q", err, row.want)
			}
		})
	}
}

func TestDataDirInUse(t *testing.T) {
	dir := t.TempDir()
	servertest.Start(t, func(c *inproc.Config) { c.DataDir = filepath.Join(dir, "data") })
	config := servertest.NewConfig(t, t.TempDir())
	config.DataDir = filepath.Join(dir, "data")
	_, err := inproc.Start(t.Context(), config, zap.NewNop())
	if err == nil || !strings.Contains(err.Error(), "is in use by another apiserver") {
		t.Errorf("a second server on the directory: %v", err)
	}
}

// TestDataDirIsPrivate: whoever can reach the store's socket has all rights.
func TestDataDirIsPrivate(t *testing.T) {
	dir := t.TempDir()
	servertest.Start(t, func(c *inproc.Config) {
		c.DataDir = filepath.Join(dir, "open")
		if err := os.Mkdir(c.DataDir, 0o755); err != nil {
			t.Fatal(err)
		}
	})
	info, err := os.Stat(filepath.Join(dir, "open"))
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("mode %v, %v, want 0700", info.Mode(), err)
	}
}

// TestStopWithOpenWatches: a stop does not wait for clients that watch.
func TestStopWithOpenWatches(t *testing.T) {
	config := servertest.NewConfig(t, t.TempDir())
	handle, err := inproc.Start(t.Context(), config, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	s := &servertest.Server{Handle: handle}
	w, err := s.As(t, servertest.Admin).CoreV1().ConfigMaps("").Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	stopped := make(chan error, 1)
	go func() { stopped <- handle.Stop() }()
	select {
	case err := <-stopped:
		if err != nil {
			t.Errorf("stopping: %v", err)
		}
	case <-time.After(time.Minute): // it would wait for the watch, which ends with the test
		t.Error("the stop waits for a client that watches")
	}
}

func portOf(address string) int {
	_, port, _ := net.SplitHostPort(address)
	n, _ := net.LookupPort("tcp", port)
	return n
}
