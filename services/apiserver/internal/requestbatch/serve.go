package requestbatch

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/audit"

	"keelson.dev/kit/batch"
	"keelson.dev/kit/contained"
	"keelson.dev/services/apiserver/internal/stack"
)

const (
	// atOnce is how many requests of a batch start at a time: the store puts what comes together into one write to
	// disk.
	atOnce = 32
	// stalled is after how much time without an answer as many more start, so that what hangs holds up nothing else.
	stalled = 50 * time.Millisecond
	// together is how long an answer waits for others that can be sent with it.
	together = time.Millisecond
)

// What can break off.
const (
	oneRequest = "a request of a batch"
	requests   = "the requests of a batch"
)

// serve answers the requests, those about one object in their order, and sends each answer soon after it is there.
func (s *server) serve(w http.ResponseWriter, r *http.Request, items []*item) {
	count(len(items))
	header := r.Header.Clone()
	for _, of := range []string{"Content-Length", auditinternal.HeaderAuditID} {
		header.Del(of)
	}
	w.Header().Set("Content-Type", batch.ContentType)
	lanes := inLanes(items)
	answers := make(chan batch.Answer, len(items))
	start := func() {
		for range min(atOnce, len(lanes)) {
			contained.Go(requests, func() {
				stack.Grow()
				for lane := range lanes {
					for _, i := range lane {
						answers <- s.answer(r, header, items[i], i)
					}
				}
			}, nil)
		}
	}
	start()
	more := time.NewTicker(stalled)
	defer more.Stop()
	to := http.NewResponseController(w)
	var unsent []byte
	var flush <-chan time.Time
	for left := len(items); left > 0; {
		select {
		case a := <-answers:
			unsent = batch.AppendAnswer(unsent, a)
			if left--; left > 0 && flush == nil {
				flush = time.After(together)
			}
			more.Reset(stalled)
		case <-flush:
			_, _ = w.Write(unsent)
			_ = to.Flush()
			unsent, flush = unsent[:0], nil
		case <-more.C:
			start()
		}
	}
	_, _ = w.Write(unsent)
}

// inLanes returns the numbers of the items: those about one object together, in their order.
func inLanes(items []*item) <-chan []int {
	var lanes [][]int
	of := map[object]int{}
	for i, it := range items {
		lane, there := of[it.about]
		switch {
		case it.about == object{}:
			lanes = append(lanes, []int{i})
		case there:
			lanes[lane] = append(lanes[lane], i)
		default:
			of[it.about] = len(lanes)
			lanes = append(lanes, []int{i})
		}
	}
	queue := make(chan []int, len(lanes))
	for _, lane := range lanes {
		queue <- lane
	}
	close(queue)
	return queue
}

// answer answers one request. What breaks off is this one alone, and be it in the words of a refusal.
func (s *server) answer(outer *http.Request, header http.Header, it *item, at int) batch.Answer {
	w := &recorder{header: http.Header{}}
	if broken := contained.Do(oneRequest, func() { s.handle(w, outer, header, it) }); broken != nil {
		w = brokenOff(broken)
	}
	w.WriteHeader(http.StatusOK)
	return batch.Answer{Item: at, Status: w.status, Header: w.header, Body: w.body.Bytes()}
}

// handle lets the request be answered as if it had come alone.
func (s *server) handle(w http.ResponseWriter, outer *http.Request, header http.Header, it *item) {
	r := (&http.Request{Method: it.Method, URL: it.url, RequestURI: it.Target, Host: outer.Host,
		Proto: outer.Proto, ProtoMajor: outer.ProtoMajor, ProtoMinor: outer.ProtoMinor,
		RemoteAddr: outer.RemoteAddr, TLS: outer.TLS, Header: maps.Clone(header),
		Body:          io.NopCloser(bytes.NewReader(it.Body)),
		ContentLength: int64(len(it.Body))}).WithContext(own{outer.Context()})
	set(r.Header, "Accept", it.Accept)
	set(r.Header, "Content-Type", it.ContentType)
	if it.err != nil {
		s.refuse(w, r, it.err)
		return
	}
	s.each.ServeHTTP(w, r)
}

func set(h http.Header, name, value string) {
	if value == "" {
		delete(h, name)
		return
	}
	h[name] = []string{value}
}

// own is the context of one request of a batch: it ends with that of the batch, and is recorded by itself.
type own struct{ context.Context }

// Value implements context.Context.
func (c own) Value(key any) any {
	value := c.Context.Value(key)
	if _, is := value.(*audit.AuditContext); is {
		return nil
	}
	return value
}

// recorder keeps what is answered.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (r *recorder) Header() http.Header { return r.header }

// WriteHeader implements http.ResponseWriter.
func (r *recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
}

// Write implements http.ResponseWriter.
func (r *recorder) Write(p []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	return r.body.Write(p)
}

// brokenOff is the answer to what broke off, in the form that every client reads: nothing of it can break off.
func brokenOff(broken error) *recorder {
	w := &recorder{header: http.Header{"Content-Type": {runtime.ContentTypeJSON}}}
	status := apierrors.NewInternalError(broken).Status()
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	w.WriteHeader(http.StatusInternalServerError)
	_ = json.NewEncoder(&w.body).Encode(status)
	return w
}
