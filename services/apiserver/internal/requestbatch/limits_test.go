package requestbatch

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/kit/batch"
)

// limited serves within limits, each request of a batch by each. Requests say who sends them.
func limited(t *testing.T, limits Limits, each http.HandlerFunc) *httptest.Server {
	t.Helper()
	return serve(t, within(limits, each, ""))
}

func serve(t *testing.T, h http.Handler) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.EnableHTTP2, s.Config.ErrorLog = true, log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// send sends a batch of a user; a body that ends sends all of it.
func send(t *testing.T, s *httptest.Server, who string, length int, body io.Reader) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+batch.Path, body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", batch.ContentType)
	r.Header.Set("X-User", who)
	r.ContentLength = int64(length)
	response, err := s.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { response.Body.Close() })
	return response
}

func sendAll(t *testing.T, s *httptest.Server, who string, items []batch.Request) *http.Response {
	t.Helper()
	var body []byte
	for _, item := range items {
		body = batch.AppendRequest(body, item)
	}
	return send(t, s, who, len(body), bytes.NewReader(body))
}

// A user has a quarter of the batches that are answered at a time; who comes next has a place, and the place of a batch
// is free when it is answered.
func TestTooManyBatches(t *testing.T) {
	release, began := make(chan struct{}), make(chan struct{}, 64)
	s := limited(t, DefaultLimits(), func(_ http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-User") == "ann" {
			began <- struct{}{}
			<-release
		}
	})
	var open sync.WaitGroup
	for range 16 {
		open.Go(func() { all(t, sendAll(t, s, "ann", named("p"))) })
	}
	for range 16 {
		<-began
	}
	response := sendAll(t, s, "ann", named("p"))
	if text, _ := io.ReadAll(response.Body); response.StatusCode != 429 || response.Header.Get("Retry-After") != "1" ||
		!strings.Contains(string(text), "at most 64 batches at a time, of one client a quarter of what others leave") {
		t.Errorf("%d %v %s", response.StatusCode, response.Header, text)
	}
	if response := sendAll(t, s, "bob", named("p")); response.StatusCode != 200 {
		t.Errorf("of somebody else: %d", response.StatusCode)
	}
	close(release)
	open.Wait()
	if response := sendAll(t, s, "ann", named("p")); response.StatusCode != 200 {
		t.Errorf("later: %d", response.StatusCode)
	}
}

// Batches that do not come take no place of those that do.
func TestSilentBatches(t *testing.T) {
	limits := DefaultLimits()
	limits.Open, limits.ReadTime = 4, time.Hour // one place for ann
	arrived := make(chan struct{}, 9)
	h := within(limits, func(http.ResponseWriter, *http.Request) {}, "")
	s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		h.ServeHTTP(w, r)
	}))
	var silent sync.WaitGroup
	defer silent.Wait()
	for range 8 {
		from, to := io.Pipe()
		defer func() { _ = to.Close() }()
		silent.Go(func() { send(t, s, "ann", -1, from) })
		<-arrived
	}
	if response := sendAll(t, s, "ann", named("p")); response.StatusCode != 200 {
		t.Errorf("beside them: %d", response.StatusCode)
	}
}

// A batch that does not come in time is not waited for.
func TestLateBatch(t *testing.T) {
	limits := DefaultLimits()
	limits.ReadTime = 50 * time.Millisecond
	s := limited(t, limits, func(http.ResponseWriter, *http.Request) { t.Error("a request was tried") })
	from, to := io.Pipe()
	defer func() { _ = to.Close() }()
	response := send(t, s, "ann", 100, from)
	if text, _ := io.ReadAll(response.Body); response.StatusCode != http.StatusRequestTimeout ||
		!strings.Contains(string(text), "a batch comes within 50ms") {
		t.Errorf("%d %s", response.StatusCode, text)
	}
}

// What is being read has a bound too, by what it says that it will be, and of one client a quarter.
func TestReadingIsBounded(t *testing.T) {
	limits := DefaultLimits()
	limits.Reading, limits.ReadTime = 6*leastRead, time.Hour // one batch of ann, and one of bob beside it
	s := limited(t, limits, func(http.ResponseWriter, *http.Request) {})
	begin := func() (end func(), ended <-chan struct{}) {
		from, to := io.Pipe()
		done := make(chan struct{})
		go func() {
			defer close(done)
			send(t, s, "ann", 100, from)
		}()
		return func() { _ = to.Close(); <-done }, done
	}
	end, ended := begin()
	defer func() { end() }()
	for deadline := time.Now().Add(time.Minute); ; {
		select {
		case <-ended: // it was refused, since one of those below was being read
			end, ended = begin()
		default:
		}
		response := sendAll(t, s, "ann", named("p"))
		if text, _ := io.ReadAll(response.Body); response.StatusCode == 429 &&
			strings.Contains(string(text), "reads at most 393216 bytes of batches at a time") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("a second batch is always read")
		}
	}
	if response := sendAll(t, s, "bob", named("p")); response.StatusCode != 200 {
		t.Errorf("of somebody else: %d", response.StatusCode)
	}
	large := send(t, s, "eve", batch.MaxBytes+1, io.LimitReader(zeros{}, batch.MaxBytes+1))
	if large.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("too large: %d", large.StatusCode)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// Answers for which there is no room keep their statuses and say that the request was done, or refused; small ones and
// those of other batches have room whatever these take.
func TestAnswersAreBounded(t *testing.T) {
	limits := DefaultLimits()
	limits.Ordinary, limits.PerBatch, limits.Answers = 100, 1000, 1<<20
	var done atomic.Int32
	s := limited(t, limits, func(w http.ResponseWriter, r *http.Request) {
		done.Add(1)
		size, status := 50, http.StatusCreated
		if strings.Contains(r.URL.Path, "large") {
			size = 5000
		}
		if strings.Contains(r.URL.Path, "refused") {
			status = http.StatusConflict
		}
		w.Header().Set("Warning", "mind")
		w.Header().Set("Content-Type", "application/vnd.kubernetes.protobuf")
		w.Header().Set("Content-Encoding", "gzip")
		w.WriteHeader(status)
		for range 10 { // as a stream writes
			if n, err := w.Write(make([]byte, size/10)); n != size/10 || err != nil {
				t.Errorf("writing: %d, %v", n, err)
			}
		}
	})
	answers := all(t, sendAll(t, s, "ann", named("small", "large", "large-refused", "small-refused", "large")))
	for i, want := range []struct {
		status int
		text   string
	}{
		{201, ""}, {201, "the request was done; its answer of 5000 bytes is left out"},
		{409, "the request was refused; its answer of 5000 bytes is left out"}, {409, ""},
		{201, "the request was done"},
	} {
		a := answers[i]
		omitted := a.Header.Get(batch.OmittedHeader)
		if a.Status != want.status || a.Header.Get("Warning") != "mind" || (omitted == "5000") != (want.text != "") {
			t.Errorf("answer %d: %d %v", i, a.Status, a.Header)
		}
		if want.text == "" {
			if len(a.Body) != 50 {
				t.Errorf("answer %d: %d bytes", i, len(a.Body))
			}
			continue
		}
		var status metav1.Status
		if err := json.Unmarshal(a.Body, &status); err != nil || status.Kind != "Status" || status.APIVersion != "v1" ||
			status.Code != int32(want.status) || (status.Status == metav1.StatusSuccess) != (want.status == 201) ||
			!strings.Contains(status.Message, want.text) || a.Header.Get("Content-Encoding") != "" ||
			a.Header.Get("Content-Type") != "application/json" {
			t.Errorf("answer %d: %v %s, %v", i, a.Header, a.Body, err)
		}
	}
	if done.Load() != 5 {
		t.Errorf("%d were done", done.Load())
	}
}

// Answers that the client reads never run out of room, however many there are: those that wait hold up what has not
// begun, by the size that they have.
func TestLargeAnswersFollowOneAnother(t *testing.T) {
	limits := DefaultLimits()
	limits.Ordinary, limits.PerBatch = 100, 2000
	s := limited(t, limits, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 1100)) })
	// Of one object: the first says how large answers are.
	items := named(slices.Repeat([]string{"p"}, 100)...)
	for i, a := range all(t, sendAll(t, s, "ann", items)) {
		if len(a.Body) != 1100 {
			t.Fatalf("answer %d: %s", i, a.Body)
		}
	}
}

// A client that reads nothing of large answers gets no more of them made than have room.
func TestUnreadAnswers(t *testing.T) {
	limits := DefaultLimits()
	const size = 6 << 20 // more than a connection takes by itself
	limits.PerBatch, limits.Answers = 2*size, 8*size
	var done atomic.Int32
	s := limited(t, limits, func(w http.ResponseWriter, _ *http.Request) {
		done.Add(1)
		_, _ = w.Write(make([]byte, size))
	})
	response := sendAll(t, s, "ann", named(slices.Repeat([]string{"p"}, 8)...))
	from := bufio.NewReaderSize(response.Body, 16)
	if _, err := from.Peek(1); err != nil {
		t.Fatal(err)
	}
	if n := done.Load(); n > 2 {
		t.Errorf("%d answers are made for a client that reads nothing", n)
	}
	for i := range 8 {
		if a, err := batch.ReadAnswer(from); err != nil || len(a.Body) != size {
			t.Fatalf("answer %d: %d bytes, %v", i, len(a.Body), err)
		}
	}
}

// The large answers of all batches have a bound together, of which one user's have a quarter.
func TestAnswersOfAllBatches(t *testing.T) {
	limits := DefaultLimits()
	limits.Ordinary, limits.PerBatch, limits.Answers = 100, 1000, 5000 // ann gets 1250, then bob 1025
	release, began := make(chan struct{}), make(chan struct{})
	s := limited(t, limits, func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write(make([]byte, 1000))
		if strings.HasSuffix(r.URL.Path, "holds") {
			close(began)
			<-release
		}
	})
	omitted := func(who, name string) bool {
		return all(t, sendAll(t, s, who, named(name)))[0].Header.Get(batch.OmittedHeader) != ""
	}
	var holding sync.WaitGroup
	holding.Go(func() {
		if omitted("ann", "holds") {
			t.Error("the first has no room")
		}
	})
	<-began
	if !omitted("ann", "p") || omitted("bob", "p") {
		t.Error("ann has more than a quarter, or bob nothing")
	}
	close(release)
	holding.Wait()
	if omitted("ann", "p") {
		t.Error("room that is free again is not given")
	}
}

// The requests of all batches that are under way have a bound, and wait for one another.
func TestUnderWay(t *testing.T) {
	limits := DefaultLimits()
	limits.UnderWay = 16 // four of ann's
	var now atomic.Int32
	s := limited(t, limits, func(http.ResponseWriter, *http.Request) {
		if n := now.Add(1); n > 4 {
			t.Errorf("%d at a time", n)
		}
		now.Add(-1)
	})
	var names []string
	for i := range 100 {
		names = append(names, fmt.Sprint("p", i))
	}
	var sending sync.WaitGroup
	for range 3 {
		sending.Go(func() {
			for _, a := range all(t, sendAll(t, s, "ann", named(names...))) {
				if a.Status != 200 {
					t.Errorf("%d %s", a.Status, a.Body)
				}
			}
		})
	}
	sending.Wait()
}

// What the time of a batch does not suffice for is not tried, and told so.
func TestTimeIsUp(t *testing.T) {
	limits := DefaultLimits()
	limits.UnderWay = 4 // one of ann's
	var tried atomic.Int32
	h := within(limits, func(_ http.ResponseWriter, r *http.Request) {
		tried.Add(1)
		<-r.Context().Done()
	}, "")
	s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), 100*time.Millisecond)
		defer cancel()
		h.ServeHTTP(w, r.WithContext(ctx))
	}))
	late := 0
	for _, a := range all(t, sendAll(t, s, "ann", named("a", "b", "c"))) {
		if a.Status == http.StatusGatewayTimeout &&
			strings.Contains(string(a.Body), "the time of the batch was up before this request") {
			late++
		}
	}
	if late+int(tried.Load()) != 3 || late == 0 {
		t.Errorf("%d tried, %d late", tried.Load(), late)
	}
}
