package servertest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/kit/batch"
	"keelson.dev/services/apiserver/inproc"
	"keelson.dev/services/apiserver/internal/servertest"
)

// accepts are what clients send: client-go by default and for custom resources, kubectl get, curl, and nonsense.
var accepts = []string{
	"application/vnd.kubernetes.protobuf,application/json", "application/json",
	"application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json",
	"*/*", "", "application/yaml", "application/json;pretty=1", "c/d",
}

// TestBatchLimits: a batch takes no more of the server than it may, whichever client sends it.
func TestBatchLimits(t *testing.T) {
	s := servertest.Start(t, func(c *inproc.Config) {
		c.Batches.Ordinary, c.Batches.PerBatch = 2<<10, 2<<10
		c.Batches.Open, c.Batches.ReadTime = 4, 5*time.Second // one batch of each of two users
	})
	t.Run("refused", func(t *testing.T) { testRefusedItems(t, s) })
	t.Run("answers", func(t *testing.T) { testOmittedAnswers(t, s) })
	t.Run("silent", func(t *testing.T) { testSilentBatches(t, s) })
}

// testRefusedItems: an item that is refused before it is tried, sent by a user without any right and in whatever form a
// client wants its answer, is answered, and so are all others.
func testRefusedItems(t *testing.T, s *servertest.Server) {
	ann := exchangeAs(t, s, "ann")
	var items []batch.Request
	for _, accept := range accepts {
		for _, target := range []string{"/api/v1/namespaces/default/configmaps", "/version", "%zz", "",
			"/api/v1/namespaces/default/pods/p/exec"} {
			for _, method := range []string{http.MethodGet, http.MethodDelete} {
				items = append(items, batch.Request{Method: method, Target: target, Accept: accept})
			}
		}
	}
	for i, a := range ann.together(t, items) {
		if a.Status != http.StatusBadRequest || !strings.Contains(string(a.Body), "may not be in a") {
			t.Errorf("%+v: %d %s", items[i], a.Status, a.Body)
		}
	}
}

// testOmittedAnswers: a write whose answer has no room is done, and its client is told that it is.
func testOmittedAnswers(t *testing.T, s *servertest.Server) {
	ns := s.Namespace(t, "omitted-answers")
	maps := s.Client.CoreV1().ConfigMaps(ns)
	large := map[string]string{"a": strings.Repeat("x", 8<<10)}
	var items []batch.Request
	for i := range 4 {
		create(t, maps, configMap(fmt.Sprint("large", i), large))
		create(t, maps, configMap(fmt.Sprint("small", i), nil))
		for _, name := range []string{"large", "small"} {
			items = append(items, batch.Request{Method: http.MethodPatch, Accept: "application/json",
				ContentType: string(types.MergePatchType), Body: []byte(`{"data":{"b":"patched"}}`),
				Target: fmt.Sprintf("/api/v1/namespaces/%s/configmaps/%s%d", ns, name, i)})
		}
	}
	admin := exchangeAs(t, s, servertest.Admin)
	for i, a := range admin.together(t, items) {
		var answer struct {
			metav1.TypeMeta
			Status any
		}
		if err := json.Unmarshal(a.Body, &answer); err != nil || a.Status != http.StatusOK {
			t.Fatalf("%s: %d %s, %v", items[i].Target, a.Status, a.Body, err)
		}
		omitted := i%2 == 0
		if omitted != (a.Header.Get(batch.OmittedHeader) != "") ||
			omitted != (answer.Kind == "Status" && answer.Status == metav1.StatusSuccess) {
			t.Errorf("%s: %v %s", items[i].Target, a.Header, a.Body)
		}
		changed, err := maps.Get(t.Context(), items[i].Target[strings.LastIndex(items[i].Target, "/")+1:],
			metav1.GetOptions{})
		if err != nil || changed.Data["b"] != "patched" {
			t.Errorf("%s is not done: %v, %v", items[i].Target, changed.Data, err)
		}
	}
	// Whoever waits for an object gets no other thing in its place.
	client := joining(s.ConfigAs(servertest.Admin)).CoreV1().ConfigMaps(ns)
	var writers sync.WaitGroup
	for i := range 32 {
		writers.Go(func() {
			c, err := client.Patch(t.Context(), "large0", types.MergePatchType,
				fmt.Appendf(nil, `{"data":{"c%d":""}}`, i), metav1.PatchOptions{})
			if err != nil && !strings.Contains(err.Error(), "the write was done, and its answer did not fit") ||
				err == nil && len(c.Data["a"]) != 8<<10 {
				t.Errorf("patch %d: %v, %v", i, c, err)
			}
		})
	}
	writers.Wait()
	if c, err := maps.Get(t.Context(), "large0", metav1.GetOptions{}); err != nil || len(c.Data) != 34 {
		t.Errorf("%d of 34 are there, %v", len(c.Data), err)
	}
}

// testSilentBatches: batches that do not arrive end in time, behind all filters, and delay no answer to others.
func testSilentBatches(t *testing.T, s *servertest.Server) {
	ann := exchangeAs(t, s, "ann")
	open := func(body io.Reader) (*http.Response, error) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, ann.host+batch.Path, body)
		if err != nil {
			return nil, err
		}
		r.Header.Set("Content-Type", batch.ContentType)
		return ann.client.Do(r)
	}
	var silent sync.WaitGroup
	for range 8 {
		silent.Go(func() {
			from, to := io.Pipe()
			defer func() { _ = to.Close() }()
			response, err := open(from)
			if err != nil {
				t.Error(err)
				return
			}
			defer response.Body.Close()
			if text, _ := io.ReadAll(response.Body); response.StatusCode != http.StatusRequestTimeout ||
				!strings.Contains(string(text), "a batch comes within 5s") {
				t.Errorf("%s %s", response.Status, text)
			}
		})
	}
	item := batch.AppendRequest(nil, batch.Request{Method: http.MethodPost, Accept: "application/json",
		Target: "/api/v1/namespaces/default/configmaps", ContentType: "application/json", Body: []byte(`{}`)})
	servertest.Eventually(t, "a batch that comes is answered", func(context.Context) string {
		response, err := open(strings.NewReader(string(item)))
		if err != nil {
			return err.Error()
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err != nil || response.StatusCode == http.StatusRequestTimeout { // on a machine that is slow itself
			return fmt.Sprint(response.Status, " ", err)
		}
		if response.StatusCode != http.StatusOK || !strings.Contains(string(text), "forbidden") {
			t.Errorf("%s %s", response.Status, text)
		}
		return ""
	})
	silent.Wait()
}
