package server

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/warning"

	"keelson.dev/kit/batch"
)

// batchOf is a batch of a write by each method, of ConfigMaps c0, c1 and so on.
func batchOf(methods ...string) io.Reader {
	var body []byte
	for i, method := range methods {
		body = batch.AppendRequest(body, batch.Request{Method: method,
			Target: fmt.Sprintf("/api/v1/namespaces/default/configmaps/c%d", i)})
	}
	return bytes.NewReader(body)
}

// postBatch sends a batch as ann, and calls seen with each answer as it comes.
func postBatch(t *testing.T, url string, body io.Reader, header http.Header, seen func(batch.Answer)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+batch.Path, body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header = header
	r.Header.Set("Content-Type", batch.ContentType)
	r.Header.Set("Authorization", "Bearer secret")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	for from := bufio.NewReader(response.Body); ; {
		a, err := batch.ReadAnswer(from)
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatalf("%s: %v", response.Status, err)
		}
		seen(a)
	}
}

// Each request of a batch meets the filters: it has a record, a time and warnings of its own, is authorized by itself
// and counts by itself for the limit of requests in flight.
func TestBatchInChain(t *testing.T) {
	options, config := chainConfig(t)
	config.MaxMutatingRequestsInFlight, config.RequestTimeout = 8*inFlightRoom, time.Minute // two of one user
	var mu sync.Mutex
	records, release := map[*audit.AuditContext]bool{}, make(chan struct{})
	server := httptest.NewServer(options.chain(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPut {
			t.Errorf("%s %s was tried", r.Method, r.URL)
		}
		mu.Lock()
		records[audit.AuditContextFrom(r.Context())] = true
		mu.Unlock()
		warning.AddWarning(r.Context(), "", r.URL.Path)
		if _, ends := r.Context().Deadline(); !ends {
			t.Error("a request without end")
		}
		<-release
		w.WriteHeader(http.StatusCreated)
	}), config))
	defer server.Close()

	// Two are under way while the others are told that this is too much.
	var statuses []int
	postBatch(t, server.URL, batchOf("PUT", "PUT", "PUT", "PUT", "PUT"), http.Header{}, func(a batch.Answer) {
		if statuses = append(statuses, a.Status); len(statuses) == 3 {
			close(release)
		}
	})
	if want := "[429 429 429 201 201]"; fmt.Sprint(statuses) != want {
		t.Errorf("statuses %v, want %s", statuses, want)
	}
	clear(records)
	ids := map[string]bool{}
	postBatch(t, server.URL, batchOf("PUT", "DELETE", "PUT"), http.Header{"Audit-Id": {"mine"}}, func(a batch.Answer) {
		ids[a.Header.Get("Audit-Id")] = true
		switch warned := strings.Join(a.Header["Warning"], ""); {
		case a.Item == 1 && (a.Status != http.StatusForbidden || !strings.Contains(string(a.Body), `cannot delete`)):
			t.Errorf("what ann may not do: %d %s", a.Status, a.Body)
		case a.Item != 1 && (a.Status != http.StatusCreated || strings.Count(warned, "/configmaps/c") != 1 ||
			!strings.Contains(warned, fmt.Sprintf("/configmaps/c%d", a.Item))):
			t.Errorf("request %d: %d, warned %q", a.Item, a.Status, warned)
		}
	})
	if len(ids) != 3 || ids["mine"] || len(records) != 2 {
		t.Errorf("record IDs %v, %d records of what was tried, want 2", ids, len(records))
	}
	// Whoever sends in the name of another may not do more than the other, nor take the name without a right to it.
	postBatch(t, server.URL, batchOf("PUT"), http.Header{"Impersonate-User": {"bob"}}, func(a batch.Answer) {
		if a.Status != http.StatusForbidden || !strings.Contains(string(a.Body), `cannot impersonate`) {
			t.Errorf("in the name of bob: %d %s", a.Status, a.Body)
		}
	})
	var nested []byte
	nested = batch.AppendRequest(nested, batch.Request{Method: http.MethodPost, Target: batch.Path,
		ContentType: batch.ContentType})
	postBatch(t, server.URL, bytes.NewReader(nested), http.Header{}, func(a batch.Answer) {
		if a.Status != http.StatusBadRequest || !strings.Contains(string(a.Body), "only paths below /api/ and /apis/") {
			t.Errorf("a batch in a batch: %d %s", a.Status, a.Body)
		}
	})
}
