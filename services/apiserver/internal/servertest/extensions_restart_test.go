package servertest_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	restclient "k8s.io/client-go/rest"

	"keelson.dev/services/apiserver/inproc"
	"keelson.dev/services/apiserver/internal/servertest"
)

// A server that is killed and started again has what it acknowledged. From its first answer on it takes no kind for
// unknown and no list of groups for whole: what it has not read yet, it says.
func TestCustomResourcesAfterKill(t *testing.T) {
	dir := t.TempDir()
	killed := startChild(t, dir, "")
	config := servertest.ConfigAs(killed.address, servertest.Admin)
	define(t, config, widgetDefinition(t))
	of := objects(t, config).Resource(widgets).Namespace(metav1.NamespaceDefault)
	if _, err := of.Create(t.Context(), widget("kept", "size", int64(7)), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	killed.kill()

	ctx, ready := context.WithCancel(t.Context())
	wrong := make(chan string, 2)
	s := servertest.StartIn(t, dir, func(c *inproc.Config) {
		again := servertest.ConfigAs(c.Listener.Addr().String(), servertest.Admin)
		for path, want := range map[string]string{"/apis/example.com/v1/namespaces/default/widgets/kept": `"size":7`,
			"/apis": `"groupVersion":"example.com/v1"`} {
			go func() { wrong <- wholeAnswers(ctx, again, path, want) }()
		}
	})
	after := objects(t, s.ConfigAs(servertest.Admin)).Resource(widgets).Namespace(metav1.NamespaceDefault)
	kept, err := after.Get(t.Context(), "kept", metav1.GetOptions{})
	if err != nil || field(kept, "spec", "size") != "7" {
		t.Errorf("after the restart: %v, %v", kept, err)
	}
	ready()
	for range cap(wrong) {
		if answer := <-wrong; answer != "" {
			t.Error(answer)
		}
	}
}

// wholeAnswers asks until ctx ends, and returns an answer that has not what is wanted though it says nothing of being
// unavailable.
func wholeAnswers(ctx context.Context, config *restclient.Config, path, want string) string {
	client, err := restclient.HTTPClientFor(config)
	if err != nil {
		return err.Error()
	}
	for ctx.Err() == nil {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+path, http.NoBody)
		if err != nil {
			return err.Error()
		}
		response, err := client.Do(r)
		if err != nil {
			continue // the server does not listen yet
		}
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		whole := response.StatusCode == http.StatusOK && strings.Contains(string(body), want)
		if err == nil && !whole && response.StatusCode != http.StatusServiceUnavailable {
			return fmt.Sprintf("%s: %d %.300s", path, response.StatusCode, body)
		}
	}
	return ""
}
