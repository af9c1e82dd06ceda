package requestbatch

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"

	"keelson.dev/kit/batch"
	"keelson.dev/services/apiserver/internal/scheme"
)

// over answers batches of ann, or of an unknown client, each request by each.
func over(each http.HandlerFunc, who string) http.Handler { return within(DefaultLimits(), each, who) }

// within is over with other limits. Where no user is named, each request names its own in X-User.
func within(limits Limits, each http.HandlerFunc, who string) http.Handler {
	known, err := scheme.New()
	if err != nil {
		panic(err)
	}
	next := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	h := Over(next, each, Config{
		Serializer: scheme.Codecs(known),
		Resolver: &request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"),
			GrouplessAPIPrefixes: sets.NewString("api")},
		LongRunning: func(_ *http.Request, info *request.RequestInfo) bool { return info.Subresource == "exec" },
		Limits:      limits,
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := cmp.Or(who, r.Header.Get("X-User"))
		h.ServeHTTP(w, r.WithContext(request.WithUser(r.Context(), &user.DefaultInfo{Name: name})))
	})
}

func write(target string) batch.Request {
	return batch.Request{Method: http.MethodPut, Target: target, ContentType: runtime.ContentTypeJSON,
		Accept: runtime.ContentTypeJSON, Body: []byte(target)}
}

// accepts are what clients send: client-go by default and for custom resources, kubectl get, curl, and nonsense.
var accepts = []string{
	"application/vnd.kubernetes.protobuf,application/json", "application/json",
	"application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json",
	"*/*", "", "application/yaml", "application/json;pretty=1", "c/d",
}

func named(names ...string) []batch.Request {
	var of []batch.Request
	for _, name := range names {
		of = append(of, write("/api/v1/namespaces/n/pods/"+name))
	}
	return of
}

func post(t *testing.T, url string, items []batch.Request) *http.Response {
	t.Helper()
	var body []byte
	for _, item := range items {
		body = batch.AppendRequest(body, item)
	}
	return postBody(t, url, body)
}

func postBody(t *testing.T, url string, body []byte) *http.Response {
	t.Helper()
	response, err := http.Post(url+batch.Path, batch.ContentType, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { response.Body.Close() })
	return response
}

// all reads the answers, by their places.
func all(t *testing.T, response *http.Response) []batch.Answer {
	t.Helper()
	if response.StatusCode != http.StatusOK || response.Header.Get("Content-Type") != batch.ContentType {
		text, _ := io.ReadAll(response.Body)
		t.Fatalf("%d %s", response.StatusCode, text)
	}
	var answers []batch.Answer
	for from := bufio.NewReader(response.Body); ; {
		a, err := batch.ReadAnswer(from)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		answers = append(answers, a)
	}
	slices.SortFunc(answers, func(a, b batch.Answer) int { return a.Item - b.Item })
	return answers
}

func serving(t *testing.T, each http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(over(each, "ann"))
	t.Cleanup(s.Close)
	return s.URL
}

// Each request is what it would be by itself, under the user of the batch, and what breaks off is one alone.
func TestEachByItself(t *testing.T) {
	url := serving(t, func(w http.ResponseWriter, r *http.Request) {
		who, _ := request.UserFrom(r.Context())
		body, _ := io.ReadAll(r.Body)
		if strings.HasSuffix(r.URL.Path, "/breaks") {
			w.WriteHeader(http.StatusCreated)
			panic("no such case")
		}
		if r.Header.Get("Accept-Encoding") != "" {
			t.Error("an answer in an answer may be compressed")
		}
		w.Header().Set("Warning", "mind")
		if strings.HasSuffix(r.URL.Path, "/refused") {
			w.WriteHeader(http.StatusConflict)
		}
		fmt.Fprintf(w, "%s %s?%s of %s: %s %s %s %s %d", r.Method, r.URL.Path, r.URL.RawQuery, who.GetName(),
			r.Header.Get("Content-Type"), r.Header.Get("Accept"), r.Header.Get("User-Agent"), body, r.ContentLength)
		r.Header.Set("Content-Type", "changed") // as filters do
	})
	answers := all(t, post(t, url, []batch.Request{write("/api/v1/namespaces/n/pods/a?x=y"),
		write("/apis/apps/v1/namespaces/n/deployments/refused"), write("/api/v1/namespaces/n/pods/breaks"),
		write("/api/v1/namespaces/n/pods/b")}))
	want := func(path, target string) string {
		return fmt.Sprintf("PUT %s of ann: application/json application/json Go-http-client/1.1 %s %d", path, target,
			len(target))
	}
	for i, row := range []struct {
		status int
		text   string
	}{
		{200, want("/api/v1/namespaces/n/pods/a?x=y", "/api/v1/namespaces/n/pods/a?x=y")},
		{409, want("/apis/apps/v1/namespaces/n/deployments/refused?",
			"/apis/apps/v1/namespaces/n/deployments/refused")},
		{500, "a request of a batch broke off: no such case"},
		{200, want("/api/v1/namespaces/n/pods/b?", "/api/v1/namespaces/n/pods/b")},
	} {
		a := answers[i]
		if a.Item != i || a.Status != row.status || !strings.Contains(string(a.Body), row.text) ||
			(row.status != 500) != (a.Header.Get("Warning") == "mind") {
			t.Errorf("answer %+v, %s; want %+v", a, a.Body, row)
		}
	}
}

// What may not be in a batch is refused alone, and never tried.
func TestRefusedItems(t *testing.T) {
	url := serving(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/namespaces/n/pods/good" {
			t.Errorf("%s %s was tried", r.Method, r.URL)
		}
	})
	long := "/" + strings.Repeat("x", 200)
	for target, want := range map[string]string{
		batch.Path: "only paths below /api/ and /apis/", "/version": "only paths below", "": "only paths below",
		"http://elsewhere/api/v1/pods": "only paths below", "//api/v1/pods": "only paths below",
		long: "only paths below",
		"DELETE /api/v1/namespaces/n/configmaps?dryRun=All": "is about many objects and may not be in a batch",
		"DELETE /apis/apps/v1/namespaces/n/deployments?x=y": "only what is about one",
		"/api/v1/namespaces/n/pods/p/exec?command=sh":       "lasts until somebody ends it",
		"/api/v1/\x00":         "only paths below",
		"GET /api/v1/pods":     `method: "GET" may not be in a batch, only POST, PUT, PATCH and DELETE`,
		"CONNECT /api/v1/pods": `method: "CONNECT"`,
	} {
		item := write(target)
		if method, path, has := strings.Cut(target, " "); has {
			item.Method, item.Target = method, path
		}
		for _, item.Accept = range accepts {
			answers := all(t, post(t, url, append(named("good"), item)))
			said := strings.Join(strings.Fields(strings.ReplaceAll(string(answers[1].Body), `\"`, `"`)), " ")
			if answers[0].Status != 200 || answers[1].Status != 400 || !strings.Contains(said, want) ||
				len(said) > 500 {
				t.Errorf("%q, %q: %d, %d %s", target, item.Accept, answers[0].Status, answers[1].Status, said)
			}
		}
	}
}

// Whatever breaks off while an item is answered, and be it the words of its refusal, there is an answer that every
// client reads.
func TestRefusalBreaksOff(t *testing.T) {
	h := Over(nil, nil, Config{Limits: DefaultLimits()}) // nothing that an answer is made of
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r.WithContext(request.WithUser(r.Context(), &user.DefaultInfo{Name: "ann"})))
	}))
	defer server.Close()
	for _, accept := range accepts {
		answers := all(t, post(t, server.URL, []batch.Request{{Method: "GET", Target: "/api/v1/pods", Accept: accept}}))
		var status metav1.Status
		if err := json.Unmarshal(answers[0].Body, &status); err != nil || answers[0].Status != 500 ||
			answers[0].Header.Get("Content-Type") != runtime.ContentTypeJSON || status.Kind != "Status" ||
			!strings.Contains(status.Message, "a request of a batch broke off") {
			t.Errorf("%q: %d %s, %v", accept, answers[0].Status, answers[0].Body, err)
		}
	}
}

// A batch has bounds, and beyond them nothing of it is tried.
func TestBounds(t *testing.T) {
	url := serving(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
	many := func(n int) []batch.Request { return slices.Repeat(named("p"), n) }
	fits := write("/api/v1/namespaces/n/pods/p")
	fits.Body = nil
	fits.Body = make([]byte, batch.MaxBytes-len(batch.AppendRequest(nil, fits))-2)
	if n := len(batch.AppendRequest(nil, fits)); n != 1<<20 {
		t.Fatalf("a batch of %d bytes", n)
	}
	beyond := fits
	beyond.Body = append(fits.Body, 0)
	for name, row := range map[string]struct {
		items  []batch.Request
		status int
		want   string
	}{
		"one":              {many(1), 200, ""},
		"128":              {many(128), 200, ""},
		"129":              {many(129), 400, "a batch has at most 128 requests"},
		"none":             {nil, 400, "a batch has at least 1 request"},
		"a MiB":            {[]batch.Request{fits}, 200, ""},
		"a MiB and a byte": {[]batch.Request{beyond}, 413, "a batch has at most 1048576 bytes"},
	} {
		response := post(t, url, row.items)
		if response.StatusCode != row.status {
			t.Errorf("%s: %d", name, response.StatusCode)
			continue
		}
		if row.status == 200 {
			if answers := all(t, response); len(answers) != len(row.items) {
				t.Errorf("%s: %d answers", name, len(answers))
			}
			continue
		}
		if text, _ := io.ReadAll(response.Body); !strings.Contains(string(text), row.want) {
			t.Errorf("%s: %s", name, text)
		}
	}
	cut := batch.AppendRequest(nil, named("p")[0])
	if response := postBody(t, url, cut[:len(cut)-1]); response.StatusCode != 400 {
		t.Errorf("cut: %d", response.StatusCode)
	}
}

// A request of an unknown client, or one that is no batch, is not opened.
func TestNoBatch(t *testing.T) {
	each := func(http.ResponseWriter, *http.Request) { t.Error("a request was tried") }
	for name, row := range map[string]struct{ who, method, path, kind string }{
		"a stranger":   {user.Anonymous, "POST", "/batch", batch.ContentType},
		"another path": {"ann", "POST", "/batch/", batch.ContentType},
		"another verb": {"ann", "PUT", "/batch", batch.ContentType},
		"another type": {"ann", "POST", "/batch", "application/json"},
		"no type":      {"ann", "POST", "/batch", ""},
	} {
		r := httptest.NewRequest(row.method, row.path, bytes.NewReader(batch.AppendRequest(nil, named("p")[0])))
		r.Header.Set("Content-Type", row.kind)
		w := httptest.NewRecorder()
		if over(each, row.who).ServeHTTP(w, r); w.Code != http.StatusTeapot {
			t.Errorf("%s: status %d", name, w.Code)
		}
	}
}

// Requests about one object follow one another in their order; others run beside them, 32 at first.
func TestOrder(t *testing.T) {
	var mu sync.Mutex
	seen, came, now, most := map[string][]string{}, 0, 0, 0
	var first sync.WaitGroup
	first.Add(32)
	url := serving(t, func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		seen[r.URL.Path] = append(seen[r.URL.Path], r.URL.RawQuery)
		came++
		now++
		most = max(most, now)
		waits := came <= 32
		mu.Unlock()
		if waits {
			first.Done()
			first.Wait()
		}
		mu.Lock()
		now--
		mu.Unlock()
	})
	var items []batch.Request
	for i := range 128 {
		items = append(items, write(fmt.Sprintf("/api/v1/namespaces/n/pods/p%d?%03d", i%40, i)))
	}
	all(t, post(t, url, items))
	for path, order := range seen {
		if !slices.IsSorted(order) || len(order) < 3 {
			t.Errorf("%s: %v", path, order)
		}
	}
	if len(seen) != 40 || most < 32 {
		t.Errorf("%d objects, %d at a time", len(seen), most)
	}
	// What is made has no name yet, and holds up nothing.
	most = 0
	var release sync.WaitGroup
	release.Add(20)
	url = serving(t, func(http.ResponseWriter, *http.Request) {
		release.Done()
		release.Wait()
	})
	all(t, post(t, url, slices.Repeat([]batch.Request{write("/api/v1/namespaces/n/pods")}, 20)))
}

// What hangs keeps neither those behind it nor answers that are there.
func TestHangs(t *testing.T) {
	release := make(chan struct{})
	url := serving(t, func(_ http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "hangs") {
			select {
			case <-release:
			case <-r.Context().Done():
			}
		}
	})
	var names []string
	for i := range 64 {
		names = append(names, fmt.Sprint("hangs", i))
	}
	names = append(names, "quick")
	response := post(t, url, named(names...))
	a, err := batch.ReadAnswer(bufio.NewReader(response.Body))
	if err != nil || a.Item != 64 || a.Status != http.StatusOK {
		t.Errorf("%+v, %v", a, err)
	}
	close(release)
}

// No client waits any more: what is under way ends.
func TestGivenUp(t *testing.T) {
	began, ended := make(chan struct{}, 3), make(chan struct{}, 3)
	url := serving(t, func(_ http.ResponseWriter, r *http.Request) {
		began <- struct{}{}
		<-r.Context().Done()
		ended <- struct{}{}
	})
	ctx, cancel := context.WithCancel(t.Context())
	var body []byte
	for _, item := range named("a", "b", "c") {
		body = batch.AppendRequest(body, item)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+batch.Path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", batch.ContentType)
	go func() {
		for range 3 {
			<-began
		}
		cancel()
	}()
	if response, err := http.DefaultClient.Do(r); err == nil {
		response.Body.Close()
	}
	for range 3 {
		<-ended
	}
}
