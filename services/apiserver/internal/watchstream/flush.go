package watchstream

import (
	"net/http"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/streaming/pkg/httpstream/wsstream"

	"keelson.dev/kit/contained"
)

const (
	// together is for how long after it was sent something a client waits for more: what comes within is one frame, one
	// TLS record and one system call at both ends. What comes alone is sent at once.
	together = 5 * time.Millisecond
	// chunk is how much may come together.
	chunk = 32 << 10
)

// WithJoinedFlushes sends the events of a watch together that come within a moment.
func WithJoinedFlushes(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, ok := request.RequestInfoFrom(r.Context())
		flusher, flushes := w.(closeNotifyFlusher)
		// A web socket has messages of its own.
		if !ok || info.Verb != "watch" || !flushes || wsstream.IsWebSocketRequest(r) {
			next.ServeHTTP(w, r)
			return
		}
		j := &joined{closeNotifyFlusher: flusher}
		defer j.end()
		next.ServeHTTP(j, r)
	})
}

// closeNotifyFlusher is what the library asks of the response to a watch.
type closeNotifyFlusher interface {
	http.ResponseWriter
	http.Flusher
	http.CloseNotifier //nolint:staticcheck // The library's wrappers are not used on a writer without it.
}

// joined gathers what is written and sends it when it is flushed, but not within a moment of the last time: a timer
// does then. Nothing waits once the handler is done.
type joined struct {
	closeNotifyFlusher

	mu sync.Mutex
	// buffer is taken from the pool while there is something in it.
	buffer *[]byte
	timer  *time.Timer
	// last is when the client was last sent something.
	last time.Time
	// due is whether the timer runs.
	due, ended bool
	err        error
}

var buffers = sync.Pool{New: func() any { b := make([]byte, 0, chunk); return &b }}

// Write implements http.ResponseWriter. An error of sending what was written before is told by the next call.
func (j *joined) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.buffer != nil && len(*j.buffer)+len(p) > chunk {
		j.write()
	}
	if j.err != nil || len(p) > chunk {
		return j.pass(p)
	}
	if j.buffer == nil {
		j.buffer = buffers.Get().(*[]byte)
	}
	*j.buffer = append(*j.buffer, p...)
	return len(p), nil
}

// Flush implements http.Flusher.
func (j *joined) Flush() {
	j.mu.Lock()
	defer j.mu.Unlock()
	wait := together - time.Since(j.last)
	switch {
	case j.due:
	case wait <= 0:
		j.send()
	case j.timer == nil:
		j.due, j.timer = true, contained.After(wait, "sending events", j.expire, nil)
	default:
		j.due = true
		j.timer.Reset(wait)
	}
}

func (j *joined) expire() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.due = false; !j.ended {
		j.send()
	}
}

// end sends what is left. After it the response is not touched.
func (j *joined) end() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.timer != nil {
		j.timer.Stop()
	}
	j.ended = true
	if j.buffer != nil {
		j.send()
	}
}

func (j *joined) send() {
	j.write()
	j.closeNotifyFlusher.Flush()
	j.last = time.Now()
}

// write hands the buffer's content on, and the buffer back.
func (j *joined) write() {
	if j.buffer == nil {
		return
	}
	_, _ = j.pass(*j.buffer)
	*j.buffer = (*j.buffer)[:0]
	buffers.Put(j.buffer)
	j.buffer = nil
}

// pass writes unless that has failed before.
func (j *joined) pass(p []byte) (n int, err error) {
	if j.err == nil {
		n, j.err = j.closeNotifyFlusher.Write(p)
	}
	return n, j.err
}
