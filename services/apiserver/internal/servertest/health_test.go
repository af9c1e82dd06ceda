package servertest_test

import (
	"context"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"keelson.dev/services/apiserver/inproc"
	"keelson.dev/services/apiserver/internal/servertest"
	"keelson.dev/services/apiserver/internal/storage"
)

// answered is the status and the body of what a server answers to a path.
func answered(ctx context.Context, client *http.Client, host, path string) (status int, body string) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, host+path, nil)
	if err != nil {
		return 0, err.Error()
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err.Error()
	}
	return response.StatusCode, string(content)
}

// The store's check is called as in the field, in each of the three places, and can be asked alone and be left out. A
// store that has gone makes the server neither live nor ready until it is back, and is told of by its component.
func TestStoreChecks(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "etcd")
	etcd, err := storage.StartEmbedded(t.Context(), dir, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { etcd.Close() })
	s := servertest.Start(t, func(c *inproc.Config) {
		c.Etcd.Servers = []string{"unix://" + filepath.Join(dir, "etcd.sock")}
	})
	config := s.ConfigAs(servertest.Admin)
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	check := func(path string, status int, says string) {
		t.Helper()
		got, body := answered(t.Context(), client, config.Host, path)
		if got != status || !strings.Contains(body, says) {
			t.Errorf("%s: %d %s, want %d and %q", path, got, body, status, says)
		}
	}
	for path, says := range map[string]string{
		"/livez?verbose=1": "[+]etcd ok", "/readyz?verbose=1": "[+]etcd ok", "/healthz?verbose=1": "[+]etcd ok",
		"/livez/etcd": "ok", "/readyz/etcd": "ok", "/healthz/etcd": "ok", "/readyz/etcd-readiness": "ok",
		"/livez?verbose=1&exclude=etcd": "[+]etcd excluded: ok",
	} {
		check(path, http.StatusOK, says)
	}
	check("/livez/etcd-readiness", http.StatusNotFound, "")

	etcd.Close()
	becomes := func(what string, want int) {
		t.Helper()
		servertest.Eventually(t, what, func(ctx context.Context) string {
			if status, body := answered(ctx, client, config.Host, "/livez"); status != want {
				return body
			}
			return ""
		})
	}
	becomes("the server is not live", http.StatusInternalServerError)
	for _, path := range []string{"/livez", "/readyz", "/healthz"} {
		check(path, http.StatusInternalServerError, "[-]etcd failed")
	}
	check("/livez?exclude=etcd", http.StatusOK, "ok")
	check("/healthz?exclude=etcd", http.StatusOK, "ok")
	check("/readyz?exclude=etcd", http.StatusInternalServerError, "[-]etcd-readiness failed")
	store, err := s.Client.CoreV1().ComponentStatuses().Get(t.Context(), "etcd-0", metav1.GetOptions{})
	if err != nil || len(store.Conditions) != 1 || store.Conditions[0].Status != corev1.ConditionFalse ||
		!strings.HasPrefix(store.Conditions[0].Error, "reading from the store: ") {
		t.Errorf("the component of a store that has gone: %+v, %v", store, err)
	}

	if etcd, err = storage.StartEmbedded(t.Context(), dir, zap.NewNop()); err != nil {
		t.Fatal(err)
	}
	becomes("the server is live again", http.StatusOK)
}
