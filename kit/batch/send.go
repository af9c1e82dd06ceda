package batch

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
)

// errCut is wrapped by the error of a write whose answer was to come with others and did not: whether it was done is
// not known.
var errCut = errors.New("the answer to a batch of requests ended early")

// errOmitted is wrapped by the error of a write that was done, and whose answer did not fit into that of its batch:
// what the caller would read in its place is no object.
var errOmitted = errors.New("the write was done, and its answer did not fit into that of its batch")

// maxRefusal is the number of bytes that are read of an answer that refuses a batch.
const maxRefusal = 64 << 10

// send sends the calls to the apiserver and settles each.
func (j *joiner) send(ctx context.Context, f *flight, calls []*call) {
	calls = j.embark(f, calls)
	switch len(calls) {
	case 0:
		j.ended(f)
		return
	case 1:
		// It ends the flight itself when it is answered.
		calls[0].outcome <- outcome{alone: f}
		return
	}
	defer j.ended(f)
	response, err := calls[0].next.RoundTrip(together(ctx, calls))
	if err != nil {
		j.settleAll(calls, func(*call) outcome { return outcome{err: err} })
		return
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusOK && response.Header.Get("Content-Type") == ContentType {
		j.deliver(response.Body, calls)
		return
	}
	j.refusedBy(response, calls)
}

// together returns the request that carries the calls.
func together(ctx context.Context, calls []*call) *http.Request {
	size := 0
	for _, c := range calls {
		size += c.item.size()
	}
	body := make([]byte, 0, size)
	for _, c := range calls {
		body = AppendRequest(body, c.item)
	}
	content := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	first := calls[0].request
	to := *first.URL
	to.Path, to.RawPath, to.RawQuery = Path, "", ""
	header := http.Header{
		"Content-Type": {ContentType},
		"Accept":       {ContentType + "," + runtime.ContentTypeJSON},
	}
	for _, name := range sharedHeaders {
		if value := first.Header[name]; value != nil {
			header[name] = value
		}
	}
	r := &http.Request{
		Method: http.MethodPost, URL: &to, Host: first.Host, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, ContentLength: int64(len(body)), GetBody: content,
	}
	r.Body, _ = content()
	return r.WithContext(ctx)
}

// deliver hands out the answers as they come. The outcome of a call without an answer is unknown.
func (j *joiner) deliver(body io.Reader, calls []*call) {
	from := bufio.NewReader(body)
	for left := len(calls); left > 0; left-- {
		a, err := ReadAnswer(from)
		if err == nil && (a.Item >= len(calls) || calls[a.Item] == nil) {
			err = fmt.Errorf("answer %d to no request, or a second one", a.Item)
		}
		if err != nil {
			j.settleAll(calls, func(c *call) outcome { return outcome{err: fmt.Errorf("%w: %w", errCut, err)} })
			return
		}
		c := calls[a.Item]
		calls[a.Item] = nil
		j.settle(c, c.outcomeOf(a))
	}
	// Read to its end, the stream is closed without a reset.
	_, _ = io.Copy(io.Discard, from)
}

// outcomeOf returns the call's outcome by its answer.
func (c *call) outcomeOf(a Answer) outcome {
	if a.Header.Get(OmittedHeader) != "" && a.Status < http.StatusBadRequest {
		return outcome{err: fmt.Errorf("%w: status %d", errOmitted, a.Status)}
	}
	return outcome{response: c.response(a.Status, a.Header, a.Body)}
}

// refusedBy settles the calls of a refused batch. If the server blames the client, also for being slow, or takes
// no more batches at present, it has begun nothing: then each call is sent alone. Any other refusal is the answer
// to each call.
func (j *joiner) refusedBy(response *http.Response, calls []*call) {
	text, _ := io.ReadAll(io.LimitReader(response.Body, maxRefusal))
	status := response.StatusCode
	switch {
	case status == http.StatusUnauthorized, status == http.StatusRequestEntityTooLarge,
		status == http.StatusTooManyRequests, status == http.StatusRequestTimeout:
	case status >= 400 && status < 500:
		j.refuse(time.Now().Add(withoutBatches))
	case status < 400:
		j.refuse(time.Now().Add(withoutBatches))
		err := fmt.Errorf("%w: status %d of type %q", errCut, status, response.Header.Get("Content-Type"))
		j.settleAll(calls, func(*call) outcome { return outcome{err: err} })
		return
	default:
		j.settleAll(calls, func(c *call) outcome {
			return outcome{response: c.response(status, response.Header.Clone(), text)}
		})
		return
	}
	j.settleAll(calls, func(*call) outcome { return outcome{alone: &flight{}} })
}

// settleAll hands the calls that are left their outcomes.
func (j *joiner) settleAll(calls []*call, of func(*call) outcome) {
	for _, c := range calls {
		if c != nil {
			j.settle(c, of(c))
		}
	}
}

// response is an answer of the server to the call.
func (c *call) response(status int, header http.Header, body []byte) *http.Response {
	header.Del("Content-Length")
	return &http.Response{Status: fmt.Sprintf("%d %s", status, http.StatusText(status)), StatusCode: status,
		Proto: "HTTP/2.0", ProtoMajor: 2, Header: header, Body: io.NopCloser(bytes.NewReader(body)),
		ContentLength: int64(len(body)), Request: c.request}
}
