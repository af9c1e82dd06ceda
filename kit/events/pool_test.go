package events

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// server answers each request once the test lets it.
type server struct {
	asked chan *call
}

// call is one request; answering it lets it pass.
type call struct {
	verb, path string
	events     []corev1.Event
	answer     chan any
	body       []byte
}

func (s *server) RoundTrip(request *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return nil, err
	}
	c := &call{verb: request.Method, path: request.URL.Path, answer: make(chan any, 1), body: body}
	var list corev1.EventList
	if c.path != "/api/v1/events" {
		list.Items = make([]corev1.Event, 1)
		err = json.Unmarshal(body, &list.Items[0])
	} else {
		err = json.Unmarshal(body, &list)
	}
	if err != nil {
		return nil, err
	}
	c.events = list.Items
	s.asked <- c
	var answer any
	select {
	case answer = <-c.answer:
	case <-request.Context().Done():
		return nil, request.Context().Err()
	}
	code := http.StatusOK
	switch a := answer.(type) {
	case error:
		return nil, a
	case metav1.Status:
		if body, err = json.Marshal(a); err != nil {
			return nil, err
		}
		code = int(a.Code)
	}
	header := http.Header{"Content-Type": {"application/json"}}
	return &http.Response{StatusCode: code, Header: header, Body: io.NopCloser(bytes.NewReader(body)),
		Request: request}, nil
}

// ok lets a request succeed, but for Events that are refused: by their place, the reason.
func (c *call) ok(refused map[int]string) {
	if c.path != "/api/v1/events" {
		c.answer <- nil
		return
	}
	status := batchAnswer()
	for i, reason := range refused {
		status.Details.Causes = append(status.Details.Causes, metav1.StatusCause{Type: metav1.CauseType(reason),
			Field: fmt.Sprintf("items[%d]", i)})
	}
	c.answer <- status
}

func batchAnswer() metav1.Status {
	return metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Code: http.StatusOK,
		Status: metav1.StatusSuccess, Details: &metav1.StatusDetails{Kind: "events"}}
}

// fail lets a request fail by a Status.
func (c *call) fail(code int, reason metav1.StatusReason) {
	c.answer <- metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Code: int32(code),
		Status: metav1.StatusFailure, Reason: reason}
}

// String returns the verb and what the Events are about and why, or how often.
func (c *call) String() string {
	var parts []string
	for _, e := range c.events {
		if c.verb == http.MethodPatch {
			parts = append(parts, fmt.Sprint("count ", e.Count))
			continue
		}
		parts = append(parts, fmt.Sprint(e.InvolvedObject.Name, " ", e.Reason))
	}
	kind := map[bool]string{true: "batch", false: c.verb}[c.path == "/api/v1/events"]
	return kind + " " + strings.Join(parts, ", ")
}

// pending returns the requests that wait for their answers when nothing else goes on.
func (s *server) pending() []*call {
	synctest.Wait()
	var calls []*call
	for len(s.asked) > 0 {
		calls = append(calls, <-s.asked)
	}
	return calls
}

// one returns the one request that waits.
func (s *server) one(t *testing.T) *call {
	t.Helper()
	calls := s.pending()
	if len(calls) != 1 {
		t.Fatalf("%d requests are under way, want 1: %v", len(calls), calls)
	}
	return calls[0]
}

// all answers requests for a minute and returns them as text, with how long after the start each came.
func (s *server) all() (texts []string) {
	start := time.Now()
	for time.Since(start) < time.Minute {
		for _, c := range s.pending() {
			texts = append(texts, c.String())
			c.ok(nil)
		}
		time.Sleep(time.Millisecond)
	}
	return texts
}

// start returns a pool that writes to a server, both for the bubble of the test.
func start(t *testing.T) (*Pool, *server) {
	t.Helper()
	s := &server{asked: make(chan *call, 1000)}
	pool, err := NewPool(&rest.Config{Host: "http://apiserver", Transport: s, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	return pool, s
}

func pod(uid string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "pod-" + uid, UID: types.UID(uid)}}
}

func referenceTo(p *corev1.Pod) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: p.Namespace, Name: p.Name, UID: p.UID}
}

func note(r *Recorder, uids ...int) {
	for _, uid := range uids {
		r.Record(pod(fmt.Sprint(uid)), Normal("Done", "done"))
	}
}

func droppedFor(t *testing.T, reason string) float64 {
	t.Helper()
	var m dto.Metric
	if err := dropped.WithLabelValues(reason).Write(&m); err != nil {
		t.Fatal(err)
	}
	return m.GetCounter().GetValue()
}

func numbers(from, to int) (out []int) {
	for n := from; n <= to; n++ {
		out = append(out, n)
	}
	return out
}

// The first Event goes at once, and what comes while it is on its way goes together, up to 200, with at least 100 ms
// from one request to the next.
func TestEventsGoTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool, server := start(t)
		defer pool.Stop()
		recorder := pool.Recorder(scheme.Scheme, "tester", "")
		began := time.Now()
		note(recorder, 1)
		first := server.one(t)
		note(recorder, numbers(2, 3)...)
		if more := server.pending(); len(more) > 0 || first.String() != "batch pod-1 Done" || time.Since(began) != 0 {
			t.Fatalf("%v, then %v, after %v", first, more, time.Since(began))
		}
		time.Sleep(10 * time.Millisecond)
		first.ok(nil)
		note(recorder, numbers(4, 300)...)
		time.Sleep(89 * time.Millisecond)
		if more := server.pending(); len(more) > 0 {
			t.Fatalf("%v after 99 ms", more)
		}
		time.Sleep(time.Millisecond)
		second := server.one(t)
		time.Sleep(time.Second)
		second.ok(nil)
		third := server.one(t)
		third.ok(nil)
		if len(second.events) != 200 || len(third.events) != 99 {
			t.Errorf("%d Events, then %d, want 200 and 99", len(second.events), len(third.events))
		}
		if more := server.all(); len(more) > 0 {
			t.Errorf("and then %v", more)
		}
		note(recorder, 301)
		server.one(t).ok(nil)
	})
}

func TestEventsAboutOneObjectKeepTheirOrderAndAreCountedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool, server := start(t)
		defer pool.Stop()
		one, other := pool.Recorder(scheme.Scheme, "one", "node-1"), pool.Recorder(scheme.Scheme, "other", "")
		p := pod("a")
		one.Record(p, Warning("BackOff", "failing"))
		first := server.one(t)
		one.Record(p, Normal("Pulled", "image is there"))
		// A reference is the same object.
		one.Record(referenceTo(p), Normal("Pulled", "image is there"))
		one.Record(p, Normal("Started", "started"))
		one.Record(referenceTo(p), Warning("BackOff", "failing"))
		one.Record(p, Warning("BackOff", "failing"))
		note(one, 1)
		other.Record(p, Warning("BackOff", "failing"))
		note(one, 2)
		first.ok(nil)
		time.Sleep(together)
		batch := server.one(t)
		names, counts := map[string]bool{}, map[string]int32{"Pulled": 2, "Started": 1, "Done": 1}
		for _, e := range batch.events {
			names[e.Name] = true
			if e.Source.Component != "one" || e.Source.Host != "node-1" || e.ReportingController != "one" ||
				e.ReportingInstance != "node-1" || e.Count != counts[e.Reason] || e.Namespace != "shop" ||
				e.FirstTimestamp.IsZero() {
				t.Errorf("%+v", e)
			}
		}
		if len(names) != 3 {
			t.Errorf("names of three Events of one moment: %v", names)
		}
		batch.ok(nil)
		want := []string{"PATCH count 3", "batch pod-a BackOff, pod-2 Done"}
		if got := server.all(); batch.String() != "batch pod-a Pulled, pod-a Started, pod-1 Done" ||
			!slices.Equal(got, want) {
			t.Errorf("got  %s, then %q\nwant %q", batch, got, want)
		}
	})
}

// An apiserver that takes no batches, or none from this daemon, gets Events one by one, eight at once, and is asked
// again after five minutes.
func TestWithoutBatches(t *testing.T) {
	for code, reason := range map[int]metav1.StatusReason{405: metav1.StatusReasonMethodNotAllowed,
		404: metav1.StatusReasonNotFound, 403: metav1.StatusReasonForbidden} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pool, server := start(t)
				defer pool.Stop()
				recorder := pool.Recorder(scheme.Scheme, "tester", "")
				note(recorder, 0)
				first := server.one(t)
				note(recorder, numbers(1, 100)...)
				first.fail(code, reason)
				if c := server.one(t); c.String() != "POST pod-0 Done" || c.path != "/api/v1/namespaces/shop/events" {
					t.Errorf("after the refusal: %s to %s", c, c.path)
				} else {
					c.ok(nil)
				}
				time.Sleep(together)
				singles := server.pending()
				if len(singles) != 8 {
					t.Errorf("%d requests at once, want 8", len(singles))
				}
				for _, c := range singles {
					c.ok(nil)
				}
				got := append(server.all(), fmt.Sprint(singles))
				if len(got) != 93 || strings.Contains(fmt.Sprint(got), "batch") {
					t.Errorf("%d requests: %v", len(got), got)
				}
				time.Sleep(4*time.Minute - together - time.Second)
				note(recorder, 1000)
				if got := fmt.Sprint(server.all()); got != "[POST pod-1000 Done]" {
					t.Errorf("before five minutes: %s", got)
				}
				note(recorder, 1001)
				if got := fmt.Sprint(server.all()); got != "[batch pod-1001 Done]" {
					t.Errorf("after five minutes: %s", got)
				}
			})
		})
	}
}

// What the apiserver cannot take now is sent again under the same names; what it refuses for good is not.
func TestEventsAreSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool, server := start(t)
		defer pool.Stop()
		recorder := pool.Recorder(scheme.Scheme, "tester", "")
		note(recorder, 1)
		first := server.one(t)
		name := first.events[0].Name
		first.answer <- errors.New("connection refused")
		note(recorder, numbers(2, 5)...)
		time.Sleep(time.Second)
		again := server.one(t)
		if again.String() != "batch pod-1 Done" || again.events[0].Name != name {
			t.Errorf("again: %s named %s, want %s", again, again.events[0].Name, name)
		}
		again.fail(503, metav1.StatusReasonServiceUnavailable)
		time.Sleep(2 * time.Second)
		third := server.one(t)
		third.ok(map[int]string{0: "AlreadyExists"})
		time.Sleep(together)
		lost := droppedFor(t, refused)
		mixed := server.one(t)
		mixed.ok(map[int]string{0: "Forbidden", 1: "Timeout", 3: "NamespaceTerminating", 99: "Timeout"})
		if got := server.all(); !slices.Equal(got, []string{"batch pod-3 Done"}) {
			t.Errorf("of %s was sent again %q", mixed, got)
		}
		if lost = droppedFor(t, refused) - lost; lost != 2 {
			t.Errorf("%v are refused, want 2", lost)
		}
	})
}

// A refusal is logged as an error, except for an Event about an object that is deleted with its namespace, or is
// gone.
func TestWhichRefusalsAreTold(t *testing.T) {
	refused := apierrors.NewForbidden(corev1.Resource("events"), "e", errors.New("not yours"))
	for _, row := range []struct {
		err          error
		ending, want bool
	}{
		{refused, false, true},
		{refused, true, false},
		{apierrors.NewNotFound(corev1.Resource("namespaces"), "gone"), false, false},
	} {
		if got := isNews(row.err, row.ending); got != row.want {
			t.Errorf("%v, ending %v: told %v", row.err, row.ending, got)
		}
	}
}

// A batch that is refused for what is in it says nothing about each of its Events.
func TestRefusedBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool, server := start(t)
		defer pool.Stop()
		recorder := pool.Recorder(scheme.Scheme, "tester", "")
		note(recorder, 1)
		server.one(t).fail(413, metav1.StatusReasonRequestEntityTooLarge)
		server.one(t).fail(422, metav1.StatusReasonInvalid)
		note(recorder, 2)
		if got := server.all(); !slices.Equal(got, []string{"batch pod-2 Done"}) {
			t.Errorf("then %q", got)
		}
	})
}

// An event that is to be counted up may be gone, and is created again then; a failure does not change the order.
func TestPatchesFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool, server := start(t)
		defer pool.Stop()
		recorder := pool.Recorder(scheme.Scheme, "tester", "")
		for _, record := range []func(){
			func() { note(recorder, 1) }, func() { recorder.Record(pod("1"), Normal("Other", "done")) }} {
			record()
			server.one(t).ok(nil)
			time.Sleep(together)
		}
		note(recorder, 1)
		recorder.Record(pod("1"), Normal("Other", "done"))
		server.one(t).fail(404, metav1.StatusReasonNotFound)
		created := server.one(t)
		if created.verb != http.MethodPost || created.events[0].Count != 2 {
			t.Errorf("after the patch: %s with count %d", created, created.events[0].Count)
		}
		created.answer <- errors.New("connection reset")
		if got := server.all(); !slices.Equal(got, []string{"PATCH count 2", "PATCH count 2"}) {
			t.Errorf("then %q", got)
		}
	})
}

// A recorder never waits: 10,000 Events may wait besides those under way, and what comes beyond is counted. An
// apiserver that is away for long loses a round, and gets the next.
func TestEventsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool, server := start(t)
		defer pool.Stop()
		recorder := pool.Recorder(scheme.Scheme, "tester", "")
		note(recorder, 0)
		call := server.one(t)
		before := droppedFor(t, overflow)
		note(recorder, numbers(1, 10_000)...)
		if n := droppedFor(t, overflow) - before; n != 0 {
			t.Errorf("%v of 10,000 are dropped", n)
		}
		note(recorder, 10_001, 10_002)
		if n := droppedFor(t, overflow) - before; n != 2 {
			t.Errorf("%v of 10,002 are dropped, want 2", n)
		}
		began, asked := time.Now(), 0
		for call.events[0].InvolvedObject.Name == "pod-0" {
			asked++
			call.answer <- errors.New("connection refused")
			time.Sleep(longestPause)
			call = server.one(t)
		}
		if asked != 12 || time.Since(began) > 3*time.Minute {
			t.Errorf("asked %d times in %v, want 12", asked, time.Since(began))
		}
		call.ok(nil)
		if got := server.all(); len(got) != 49 {
			t.Errorf("%d more requests, want 49", len(got))
		}
	})
}

// The end of a process writes what waits, without pauses, but waits for no apiserver longer than two seconds.
func TestStop(t *testing.T) {
	for _, away := range []bool{false, true} {
		t.Run(fmt.Sprint("away ", away), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pool, server := start(t)
				recorder := pool.Recorder(scheme.Scheme, "tester", "")
				note(recorder, numbers(0, 500)...)
				began := time.Now()
				stopped := make(chan time.Duration, 1)
				go func() {
					pool.Stop()
					stopped <- time.Since(began)
				}()
				written, want := 0, 501
				for calls := server.pending(); len(calls) > 0 && !away; calls = server.pending() {
					for _, c := range calls {
						written += len(c.events)
						c.ok(nil)
					}
				}
				longest := time.Duration(0)
				if away {
					longest, want = 2*time.Second, 0
				}
				if took := <-stopped; took != longest || written != want {
					t.Errorf("wrote %d and took %v, want %d in %v", written, took, want, longest)
				}
				note(recorder, 1)
				pool.Stop()
			})
		})
	}
}
