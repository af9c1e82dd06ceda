// Package requestbatch answers many requests that come as one, each as if it had come alone: by its own authorization,
// limits, audit, admission and store call, under the user of the batch. kit/batch says how a batch is written.
package requestbatch

import (
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"

	"keelson.dev/kit/batch"
	"keelson.dev/kit/contained"
	"keelson.dev/services/apiserver/internal/fairshare"
	"keelson.dev/services/apiserver/internal/negotiated"
)

var errTooLarge = apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("a batch has at most %d bytes", batch.MaxBytes))

// Config is what is asked about requests.
type Config struct {
	Serializer runtime.NegotiatedSerializer
	Resolver   request.RequestInfoResolver
	// LongRunning are the requests that have no end of their own.
	LongRunning request.LongRunningRequestCheck
	Limits      Limits
}

// server opens batches.
type server struct {
	Config
	// each answers a request of a batch.
	each http.Handler
	// open are the batches that are answered, underWay their requests, reading the bytes of those that still come, and
	// answers what waits to be sent.
	open, underWay, reading, answers *fairshare.Shares
}

// Over answers batches, each of their requests by each, and lets next answer everything else. It stands behind
// authentication: a client that is not known cannot send batches.
func Over(next, each http.Handler, c Config) http.Handler {
	register()
	s := &server{Config: c, each: each, open: fairshare.New(int64(c.Limits.Open), 1),
		underWay: fairshare.New(int64(c.Limits.UnderWay), 1), reading: fairshare.New(c.Limits.Reading, leastRead),
		answers: fairshare.New(c.Limits.Answers, 0)}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who, sends := sender(r)
		if !sends {
			next.ServeHTTP(w, r)
			return
		}
		items, err := s.take(r, who)
		if err != nil {
			s.refuse(w, r, err)
			return
		}
		defer s.open.Give(who, 1)
		s.serve(w, r, items, who)
	})
}

// sender is the client that sends a batch; false if the request is none, or its client is not known.
func sender(r *http.Request) (name string, sends bool) {
	if r.Method != http.MethodPost || r.URL.Path != batch.Path {
		return "", false
	}
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != batch.ContentType {
		return "", false
	}
	who, known := request.UserFrom(r.Context())
	if !known || who.GetName() == user.Anonymous {
		return "", false
	}
	return fairshare.Client(who.GetName()), true
}

func (s *server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	negotiated.Writer{Serializer: s.Serializer, Version: metav1.SchemeGroupVersion}.Error(w, r, err)
}

// take opens the batch once all of it is there, so that a slow sender delays no answer. Without an error it counts as
// open.
func (s *server) take(r *http.Request, who string) ([]*item, error) {
	body, err := s.read(r, who)
	if err != nil {
		return nil, err
	}
	requests, err := batch.ReadRequests(body)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	items := make([]*item, 0, len(requests))
	for _, of := range requests {
		items = append(items, s.item(of))
	}
	if !s.open.Take(who, 1) {
		return nil, apierrors.NewTooManyRequests(fmt.Sprintf(
			"the server answers at most %d batches at a time, of one client a quarter of what others leave",
			s.Limits.Open), 1)
	}
	return items, nil
}

// read reads the batch, and waits for it as long as the limits say. Until all of it is there or the request has ended,
// its bytes count. It sets no deadline of the connection: another handler may end the request at any time, and a writer
// whose request has ended must not be used.
func (s *server) read(r *http.Request, who string) ([]byte, error) {
	if r.ContentLength > batch.MaxBytes {
		return nil, errTooLarge
	}
	n := weight(r.ContentLength, leastRead, batch.MaxBytes)
	if !s.reading.Take(who, n) {
		return nil, apierrors.NewTooManyRequests(fmt.Sprintf(
			"the server reads at most %d bytes of batches at a time, of one client a quarter of what others leave",
			s.Limits.Reading), 1)
	}
	from, come := r.Body, make(chan arrival, 1)
	readAll := func() (a arrival) {
		defer s.reading.Give(who, n)
		a.body, a.err = io.ReadAll(io.LimitReader(from, batch.MaxBytes+1))
		return a
	}
	contained.Go("reading a batch", func() { come <- readAll() }, func(broken error) { come <- arrival{err: broken} })
	late := time.NewTimer(s.Limits.ReadTime)
	defer late.Stop()
	select {
	case a := <-come:
		return a.check()
	case <-late.C: // the reading ends with the request; HTTP/1 sends the answer after it
		return nil, &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure,
			Code: http.StatusRequestTimeout, Reason: metav1.StatusReasonTimeout,
			Message: fmt.Sprintf("a batch comes within %s", s.Limits.ReadTime)}}
	}
}

// arrival is a batch that was read, or why it was not read to its end.
type arrival struct {
	body []byte
	err  error
}

func (a arrival) check() ([]byte, error) {
	if a.err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("reading the batch: %v", a.err))
	}
	if len(a.body) > batch.MaxBytes {
		return nil, errTooLarge
	}
	return a.body, nil
}

// item is one request of a batch.
type item struct {
	batch.Request
	// url is nil if the request is not even tried for want of one.
	url *url.URL
	// err is why the request is not even tried.
	err error
	// about is the object; empty if the request names none.
	about object
}

// object is what requests may be about.
type object struct{ group, resource, namespace, name string }

// item reads what a request is about. Only writes of one object may be in a batch: what reads or lasts would hold up
// the others, and what is about many has an answer without bound.
func (s *server) item(of batch.Request) *item {
	i := &item{Request: of}
	switch of.Method {
	case http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
	default:
		i.err = apierrors.NewBadRequest(
			fmt.Sprintf("method: %q may not be in a batch, only POST, PUT, PATCH and DELETE",
				of.Method))
		return i
	}
	var err error
	if i.url, err = url.ParseRequestURI(of.Target); err != nil || i.url.Host != "" ||
		!strings.HasPrefix(i.url.Path, "/api/") && !strings.HasPrefix(i.url.Path, "/apis/") {
		i.err = apierrors.NewBadRequest(fmt.Sprintf("target: %.100q may not be in a batch, only paths below /api/ and "+
			"/apis/", of.Target))
		return i
	}
	r := &http.Request{Method: of.Method, URL: i.url}
	info, err := s.Resolver.NewRequestInfo(r)
	switch {
	case err != nil:
		i.err = apierrors.NewBadRequest(fmt.Sprintf("target: %v", err))
	case s.LongRunning(r, info):
		i.err = apierrors.NewBadRequest(fmt.Sprintf("target: %.100q lasts until somebody ends it and may not be in a "+
			"batch", of.Target))
	case info.Verb == "deletecollection":
		i.err = apierrors.NewBadRequest(fmt.Sprintf("target: %.100q is about many objects and may not be in a "+
			"batch, only what is about one", of.Target))
	case info.Name != "":
		i.about = object{info.APIGroup, info.Resource, info.Namespace, info.Name}
	}
	return i
}
