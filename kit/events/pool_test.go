package events

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// server answers each request once the test lets it.
type server struct {
	asked chan call
}

// call is one request; closing answer lets it pass.
type call struct {
	verb   string
	event  corev1.Event
	answer chan struct{}
}

func (s *server) RoundTrip(request *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return nil, err
	}
	c := call{verb: request.Method, answer: make(chan struct{})}
	if err := json.Unmarshal(body, &c.event); err != nil {
		return nil, err
	}
	s.asked <- c
	<-c.answer
	header := http.Header{"Content-Type": {"application/json"}}
	return &http.Response{StatusCode: http.StatusOK, Header: header, Body: io.NopCloser(bytes.NewReader(body)),
		Request: request}, nil
}

// pending returns the requests that wait for their answers when nothing else goes on.
func (s *server) pending() []call {
	synctest.Wait()
	var calls []call
	for len(s.asked) > 0 {
		calls = append(calls, <-s.asked)
	}
	return calls
}

// start returns a pool that writes to a server, both for the bubble of the test.
func start(t *testing.T) (*Pool, *server) {
	t.Helper()
	s := &server{asked: make(chan call, 100)}
	pool, err := NewPool(&rest.Config{Host: "http://apiserver", Transport: s, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	return pool, s
}

func pod(uid string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "pod-" + uid, UID: types.UID(uid)}}
}

func reference(p *corev1.Pod) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: p.Namespace, Name: p.Name, UID: p.UID}
}

func TestEventsAboutManyObjectsAreWrittenAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool, server := start(t)
		defer pool.Stop()
		recorder := pool.Recorder(scheme.Scheme, "tester", "")
		for i := range 100 * writers {
			recorder.Record(pod(fmt.Sprint(i)), Normal("Done", "done"))
		}
		calls := server.pending()
		if len(calls) != writers {
			t.Errorf("%d requests are under way, want %d", len(calls), writers)
		}
		pool.Stop()
		for ; len(calls) > 0; calls = server.pending() {
			for _, c := range calls {
				close(c.answer)
			}
		}
	})
}

func TestEventsAboutOneObjectKeepTheirOrderAndAreCountedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool, server := start(t)
		defer pool.Stop()
		one, other := pool.Recorder(scheme.Scheme, "one", "node-1"), pool.Recorder(scheme.Scheme, "other", "")
		p := pod("a")
		one.Record(p, Normal("Pulled", "image is there"))
		// A reference is the same object.
		one.Record(reference(p), Warning("BackOff", "failing"))
		one.Record(p, Warning("BackOff", "failing"))
		one.Record(reference(p), Warning("BackOff", "failing"))
		other.Record(p, Warning("BackOff", "failing"))
		var got []string
		for calls := server.pending(); len(calls) > 0; calls = server.pending() {
			if len(calls) != 1 {
				t.Fatalf("%d requests about one object are under way, want one at a time", len(calls))
			}
			e := calls[0].event
			if calls[0].verb == http.MethodPost {
				got = append(got, fmt.Sprintf("create %s %s by %s on %q", e.Type, e.Reason, e.Source.Component,
					e.Source.Host))
			} else {
				got = append(got, fmt.Sprintf("%s count %d", calls[0].verb, e.Count))
			}
			close(calls[0].answer)
		}
		want := []string{
			`create Normal Pulled by one on "node-1"`, `create Warning BackOff by one on "node-1"`, "PATCH count 2",
			"PATCH count 3",
			`create Warning BackOff by other on ""`,
		}
		if !slices.Equal(got, want) {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	})
}
