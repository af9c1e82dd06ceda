package support

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// A page of a daemon is collected without credentials, also where the daemon says that it is not ready; what it keeps
// from keel, or does not have, is not taken for the page.
func TestFetch(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/readyz":
			http.Error(w, "not ready: token=hunter2", http.StatusInternalServerError)
		case "/metrics":
			fmt.Fprint(w, "up 1")
		case "/debug":
			http.Error(w, "a client certificate is needed", http.StatusForbidden)
		default:
			http.NotFound(w, r)
		}
	}))
	defer server.Close()
	for path, want := range map[string]struct{ content, note, fault string }{
		"/readyz":  {"not ready: token=REDACTED\n", "500 Internal Server Error", ""},
		"/metrics": {"up 1", "", ""},
		"/debug":   {"", "", "answers 403 Forbidden"},
		"/other":   {"", "", "answers 404 Not Found"},
	} {
		content, note, err := fetch(t.Context(), &tls.Config{InsecureSkipVerify: true}, server.URL+path)
		if string(content) != want.content || note != want.note || fmt.Sprint(err) != "<nil>" && want.fault == "" ||
			!strings.Contains(fmt.Sprint(err), want.fault) {
			t.Errorf("%s: %q (%s), %v", path, content, note, err)
		}
	}
}

// pagesOf serves Pods in pages of so many, with names of their numbers, until the last page, which fails where broken.
func pagesOf(t *testing.T, pages, perPage int, broken bool) dynamic.Interface {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page, _ := strconv.Atoi(r.URL.Query().Get("continue")) // the first has none
		if r.URL.Path != "/api/v1/pods" || r.URL.Query().Get("limit") != "500" {
			t.Errorf("asked for %s", r.URL)
		}
		w.Header().Set("Content-Type", "application/json")
		if broken && page == pages-1 {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		var items []string
		for i := range perPage {
			items = append(items, fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p%d"},
				"spec":{"containers":[{"args":["hunter2"]}]}}`, page*perPage+i))
		}
		next := ""
		if page < pages-1 {
			next = fmt.Sprint(page + 1)
		}
		fmt.Fprintf(w, `{"apiVersion":"v1","kind":"PodList","metadata":{"continue":%q},"items":[%s]}`, next,
			strings.Join(items, ","))
	}))
	t.Cleanup(server.Close)
	client, err := dynamic.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// Objects are collected page by page, without credentials, up to a limit.
func TestObjects(t *testing.T) {
	for _, r := range []struct {
		name           string
		pages, perPage int
		broken         bool
		count          int
		note           string
	}{
		{"none", 1, 0, false, 0, "0"},
		{"three pages", 3, 2, false, 6, "6"},
		{"the last page fails", 3, 2, true, 4, "the first 4"},
		{"as many as the limit", 10, 500, false, 5000, "5000"},
		{"one page more", 11, 500, false, 5000, "the first 5000"},
	} {
		content, note, err := objects(t.Context(), pagesOf(t, r.pages, r.perPage, r.broken),
			schema.GroupVersionResource{Version: "v1", Resource: "pods"})
		var list struct {
			Items []struct{ Metadata struct{ Name string } }
		}
		if fault := json.Unmarshal(content, &list); fault != nil {
			t.Fatalf("%s: %v", r.name, fault)
		}
		if (err != nil) != r.broken || note != r.note || len(list.Items) != r.count {
			t.Errorf("%s: %d objects (%s), %v", r.name, len(list.Items), note, err)
		}
		if n := r.count - 1; n >= 0 && list.Items[n].Metadata.Name != fmt.Sprint("p", n) {
			t.Errorf("%s: the last one is %s", r.name, list.Items[n].Metadata.Name)
		}
		if strings.Contains(string(content), "hunter2") {
			t.Errorf("%s: it holds a credential", r.name)
		}
	}
}
