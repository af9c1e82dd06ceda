package requestbatch

import (
	"context"
	"maps"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/audit"

	"keelson.dev/kit/batch"
	"keelson.dev/kit/contained"
	"keelson.dev/services/apiserver/internal/requestbody"
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
	// much is how many bytes do not wait for others.
	much = 64 << 10
)

// What can break off.
const (
	oneRequest = "a request of a batch"
	requests   = "the requests of a batch"
)

// recorded is an answer with what it has taken of the batch's room.
type recorded struct {
	batch.Answer
	took int64
}

// serve answers the requests, those about one object in their order, and sends each answer soon after it is there.
func (s *server) serve(w http.ResponseWriter, r *http.Request, items []*item, user string) {
	count(len(items))
	header := r.Header.Clone()
	// These are about the batch: a client does not look for a compressed answer inside one.
	for _, of := range []string{"Content-Length", "Accept-Encoding", auditinternal.HeaderAuditID} {
		header.Del(of)
	}
	w.Header().Set("Content-Type", batch.ContentType)
	within := &room{Limits: &s.Limits, user: user, underWay: s.underWay, answers: s.answers}
	defer within.close()
	lanes := inLanes(items)
	answers := make(chan recorded, len(items))
	start := func() {
		for range min(atOnce, len(lanes)) {
			contained.Go(requests, func() {
				stack.Grow()
				for lane := range lanes {
					for _, i := range lane {
						answers <- s.answer(r, header, items[i], i, within)
					}
				}
			}, nil)
		}
	}
	start()
	more := time.NewTicker(stalled)
	defer more.Stop()
	out := sending{to: w, within: within}
	for left := len(items); left > 0; {
		select {
		case a := <-answers:
			left--
			out.add(a)
			more.Reset(stalled)
		case <-out.due:
			out.send()
		case <-more.C:
			start()
		}
	}
	out.finish()
}

// sending is what is on its way to the client.
type sending struct {
	to     http.ResponseWriter
	within *room
	unsent []byte
	took   int64
	// due says when what waits for others is sent.
	due <-chan time.Time
}

// add lets an answer wait a moment for others, unless much waits already.
func (s *sending) add(a recorded) {
	s.unsent = batch.AppendAnswer(s.unsent, a.Answer)
	s.took += a.took
	switch {
	case len(s.unsent) >= much:
		s.send()
	case s.due == nil:
		s.due = time.After(together)
	}
}

func (s *sending) send() {
	s.finish()
	_ = http.NewResponseController(s.to).Flush()
}

// finish writes what waits. What the client does not read stays in the batch's room until then.
func (s *sending) finish() {
	_, _ = s.to.Write(s.unsent)
	s.within.give(s.took)
	s.unsent, s.took, s.due = s.unsent[:0], 0, nil
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
func (s *server) answer(outer *http.Request, header http.Header, it *item, at int, within *room) recorded {
	w := within.recorder()
	if !within.begin(outer.Context()) {
		it.err = apierrors.NewTimeoutError("the time of the batch was up before this request", 0)
	} else {
		defer func() { within.end(w.took) }()
	}
	if broken := contained.Do(oneRequest, func() { s.handle(w, outer, header, it) }); broken != nil {
		w.broken(broken)
	}
	return recorded{w.answer(at), w.took}
}

// handle lets the request be answered as if it had come alone.
func (s *server) handle(w http.ResponseWriter, outer *http.Request, header http.Header, it *item) {
	r := (&http.Request{Method: it.Method, URL: it.url, RequestURI: it.Target, Host: outer.Host,
		Proto: outer.Proto, ProtoMajor: outer.ProtoMajor, ProtoMinor: outer.ProtoMinor,
		RemoteAddr: outer.RemoteAddr, TLS: outer.TLS, Header: maps.Clone(header),
		Body:          requestbody.Of(it.Body),
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
