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

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"

	"keelson.dev/kit/batch"
	"keelson.dev/services/apiserver/internal/negotiated"
)

// maxOpen is how many batches are answered at a time, by which what they take of memory has an end.
const maxOpen = 64

// Config is what is asked about requests.
type Config struct {
	Serializer runtime.NegotiatedSerializer
	Resolver   request.RequestInfoResolver
	// LongRunning are the requests that have no end of their own.
	LongRunning request.LongRunningRequestCheck
}

// server opens batches.
type server struct {
	Config
	// each answers a request of a batch.
	each http.Handler
	open chan struct{}
}

// Over answers batches, each of their requests by each, and lets next answer everything else. It stands behind
// authentication; what is not known, nobody sends together.
func Over(next, each http.Handler, c Config) http.Handler {
	register()
	s := &server{Config: c, each: each, open: make(chan struct{}, maxOpen)}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isBatch(r) {
			next.ServeHTTP(w, r)
			return
		}
		items, err := s.take(r)
		if err != nil {
			s.refuse(w, r, err)
			return
		}
		defer func() { <-s.open }()
		s.serve(w, r, items)
	})
}

// isBatch is whether a request is a batch of somebody who has said who it is.
func isBatch(r *http.Request) bool {
	if r.Method != http.MethodPost || r.URL.Path != batch.Path {
		return false
	}
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != batch.ContentType {
		return false
	}
	who, known := request.UserFrom(r.Context())
	return known && who.GetName() != user.Anonymous
}

func (s *server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	negotiated.Writer{Serializer: s.Serializer, Version: metav1.SchemeGroupVersion}.Error(w, r, err)
}

// take opens the batch. Without an error it counts as open.
func (s *server) take(r *http.Request) (items []*item, err error) {
	select {
	case s.open <- struct{}{}:
	default:
		return nil, apierrors.NewTooManyRequests(
			fmt.Sprintf("the server answers at most %d batches at a time", maxOpen), 1)
	}
	defer func() {
		if err != nil {
			<-s.open
		}
	}()
	body, err := io.ReadAll(io.LimitReader(r.Body, batch.MaxBytes+1))
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("reading the batch: %v", err))
	}
	if len(body) > batch.MaxBytes {
		return nil, apierrors.NewRequestEntityTooLargeError(
			fmt.Sprintf("a batch has at most %d bytes", batch.MaxBytes))
	}
	requests, err := batch.ReadRequests(body)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	for _, of := range requests {
		items = append(items, s.item(of))
	}
	return items, nil
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

// item reads what a request is about. Only writes may be in a batch: what reads or lasts would hold up the others.
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
	case info.Name != "":
		i.about = object{info.APIGroup, info.Resource, info.Namespace, info.Name}
	}
	return i
}
