package servertest_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"
	"k8s.io/kms/pkg/service"

	"keelson.dev/services/apiserver/inproc"
	"keelson.dev/services/apiserver/internal/servertest"
)

// plugin is a KMS whose keys are bytes that it adds to what it is given.
type plugin struct {
	socket string
	server *service.GRPCService
	ended  chan error

	mu   sync.Mutex // guards below
	keys map[string]byte
	// current is the id of the key that it encrypts with, delay how long it takes.
	current string
	delay   time.Duration
}

func newPlugin(t *testing.T) *plugin {
	t.Helper()
	return &plugin{socket: filepath.Join(t.TempDir(), "kms.sock"), keys: map[string]byte{"one": 1, "two": 2},
		current: "one"}
}

// rule says that Secrets are encrypted by the plugin.
func (p *plugin) rule() string {
	return rule("secrets", fmt.Sprintf("kms: {apiVersion: v2, name: ours, endpoint: 'unix://%s', timeout: 500ms}",
		p.socket), identity)
}

func (p *plugin) start(t *testing.T) {
	t.Helper()
	p.server, p.ended = service.NewGRPCService(p.socket, time.Second, p), make(chan error, 1)
	go func() { p.ended <- p.server.ListenAndServe() }()
	t.Cleanup(p.server.Close)
}

func (p *plugin) stop() {
	p.server.Close()
	<-p.ended
}

func (p *plugin) set(current string, delay time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.current, p.delay = current, delay
}

// answer waits as long as the plugin takes.
func (p *plugin) answer(ctx context.Context) (current string, err error) {
	p.mu.Lock()
	current, delay := p.current, p.delay
	p.mu.Unlock()
	select {
	case <-time.After(delay):
		return current, nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

func shifted(data []byte, by byte) []byte {
	out := make([]byte, len(data))
	for i, b := range data {
		out[i] = b + by
	}
	return out
}

// Status implements service.Service.
func (p *plugin) Status(ctx context.Context) (*service.StatusResponse, error) {
	current, err := p.answer(ctx)
	return &service.StatusResponse{Version: "v2", Healthz: "ok", KeyID: current}, err
}

// Encrypt implements service.Service.
func (p *plugin) Encrypt(ctx context.Context, _ string, data []byte) (*service.EncryptResponse, error) {
	current, err := p.answer(ctx)
	return &service.EncryptResponse{Ciphertext: shifted(data, p.keys[current]), KeyID: current}, err
}

// Decrypt implements service.Service.
func (p *plugin) Decrypt(ctx context.Context, _ string, request *service.DecryptRequest) ([]byte, error) {
	if _, err := p.answer(ctx); err != nil {
		return nil, err
	}
	key, ok := p.keys[request.KeyID]
	if !ok {
		return nil, errors.New("no such key")
	}
	return shifted(request.Ciphertext, -key), nil
}

// TestKMS: a plugin of version 2 keeps the key. While it is slow or gone, what the server has begun with goes on.
func TestKMS(t *testing.T) {
	t.Parallel()
	shared := servertest.SharedStore(t)
	store := servertest.OpenRawStore(t, shared)
	kms := newPlugin(t)
	kms.start(t)
	s := servertest.Start(t, encrypting(t, shared, kms.rule()))
	createSecret(t, s.Client, "first")
	storedAs(t, store, secretKey+"first", "k8s:enc:kms:v2:ours:")
	kms.set("one", time.Hour)
	createSecret(t, s.Client, "slow")
	kms.set("one", 0)
	kms.stop()
	createSecret(t, s.Client, "down")
	storedAs(t, store, secretKey+"down", "k8s:enc:kms:v2:ours:")
	readable(t, s.Client, "first", "slow", "down")
	kms.start(t)

	// The key changes: what is touched is encrypted with the new one, once the server has asked for it.
	if touch(t, s.Client, "first") {
		t.Error("a Secret was written anew with the key that it was encrypted with")
	}
	kms.set("two", 0)
	config := s.ConfigAs(servertest.Admin)
	client, err := restclient.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	within90s(t, "the new key", func(ctx context.Context) string {
		if status, body := answered(ctx, client, config.Host, "/healthz/kms-providers"); status != http.StatusOK {
			return body
		}
		if !touch(t, s.Client, "first") {
			return "the Secret is still as it was"
		}
		return ""
	})
	readable(t, s.Client, "first", "down")
}

// TestKMSIsNotThere: a server that begins without its plugin serves what it needs no plugin for, is not ready, says
// why, and becomes so when the plugin comes.
func TestKMSIsNotThere(t *testing.T) {
	t.Parallel()
	for name, away := range map[string]func(*plugin){
		"down": func(p *plugin) { p.stop() },
		"slow": func(p *plugin) { p.set("one", time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shared := servertest.SharedStore(t)
			kms := newPlugin(t)
			kms.start(t)
			before := servertest.Start(t, encrypting(t, shared, kms.rule()))
			createSecret(t, before.Client, "kept")
			create(t, before.Client.CoreV1().ConfigMaps("default"), configMap("open", nil))
			if err := before.Stop(); err != nil {
				t.Fatal(err)
			}
			away(kms)
			config := servertest.NewConfig(t, t.TempDir())
			encrypting(t, shared, kms.rule())(config)
			ready := startUnready(t, config)
			connection := servertest.ConfigAs(config.Listener.Addr().String(), servertest.Admin)
			client, err := kubernetes.NewForConfig(connection)
			if err != nil {
				t.Fatal(err)
			}
			within90s(t, "what needs no plugin", func(ctx context.Context) string {
				if _, err := client.CoreV1().ConfigMaps("default").Get(ctx, "open", metav1.GetOptions{}); err != nil {
					return err.Error()
				}
				return ""
			})
			if _, err := client.CoreV1().Secrets("default").Get(t.Context(), "kept", metav1.GetOptions{}); err == nil ||
				!strings.Contains(err.Error(), "/secrets/default/kept") {
				t.Errorf("reading a Secret: %v", err)
			}
			asked, err := restclient.HTTPClientFor(connection)
			if err != nil {
				t.Fatal(err)
			}
			within90s(t, "what needs no plugin to have started", func(ctx context.Context) string {
				if status, body := answered(ctx, asked, connection.Host, "/livez"); status != http.StatusOK {
					return body
				}
				return ""
			})
			if status, body := answered(t.Context(), asked, connection.Host, "/readyz"); status == http.StatusOK ||
				!strings.Contains(body, "[-]kms-providers failed") {
				t.Errorf("readiness: %d %s", status, body)
			}
			if name == "down" {
				kms.start(t)
			}
			kms.set("one", 0)
			if err := <-ready; err != nil {
				t.Fatal(err)
			}
			readable(t, client, "kept")
		})
	}
}

// startUnready begins to start a server, which ends with the test, and tells when it is ready.
func startUnready(t *testing.T, config *inproc.Config) <-chan error {
	t.Helper()
	ready := make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	var handle *inproc.Handle
	done := make(chan struct{})
	go func() {
		defer close(done)
		var err error
		handle, err = inproc.Start(ctx, config, zap.NewNop())
		ready <- err
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		if handle != nil {
			_ = handle.Stop()
		}
	})
	return ready
}

// within90s is servertest.Eventually for what the library looks for every 20 s.
func within90s(t *testing.T, what string, condition func(ctx context.Context) (missing string)) {
	t.Helper()
	missing := ""
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 90*time.Second, true,
		func(ctx context.Context) (bool, error) {
			missing = condition(ctx)
			return missing == "", nil
		})
	if err != nil {
		t.Fatalf("%s: %s", what, missing)
	}
}
