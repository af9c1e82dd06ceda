// Package largework bounds how many bytes of objects and lists the server holds and works on at a time. Decoding,
// patching and encoding a large one takes a processor for tens of milliseconds; hundreds at once would keep all small
// requests waiting, those for the Leases of the daemons among them.
package largework

import (
	"context"
	"net/http"
	goruntime "runtime"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/endpoints/responsewriter"

	"keelson.dev/kit/contained"
	"keelson.dev/services/apiserver/internal/fairshare"
	"keelson.dev/services/apiserver/internal/negotiated"
	"keelson.dev/services/apiserver/internal/objectsize"
	"keelson.dev/services/apiserver/internal/requestbody"
)

const (
	// perProcessor is how many bytes are worked on for each processor: the work of about a tenth of a second.
	perProcessor = 4 << 20
	// bodies is how many bytes of large bodies there may be at a time, those that still come with them.
	bodies = 256 << 20
	// longest is for how long an answer that is being sent keeps others waiting: its client may not read it.
	longest = time.Second
	// compressed is what an answer has at least that the library compresses, packed how many bytes one of it stands
	// for.
	compressed, packed = 128 << 10, 8
)

// Limit is how much large work is done at a time.
type Limit struct {
	// Bytes is the total, of which one client may have a quarter of what others leave; zero is 4 MiB for each
	// processor.
	Bytes int64
	// Bodies is how many bytes of large bodies there may be at a time, of one client a quarter of what others leave;
	// zero is 256 MiB.
	Bodies int64
	// MaxBodyBytes is how long the body of a request may be.
	MaxBodyBytes int64
	// Sizes knows how large objects and lists are, and learns it of lists.
	Sizes *objectsize.Book
	// LongRunning tells the requests that last: they are sent as they come, not made at once.
	LongRunning request.LongRunningRequestCheck
	// Serializer encodes a refusal as the client asks for it.
	Serializer runtime.NegotiatedSerializer
}

// With lets small requests through to the handler, and large ones when it is their client's turn.
func (l Limit) With(handler http.Handler) http.Handler {
	if l.Bytes == 0 {
		l.Bytes = perProcessor * int64(goruntime.GOMAXPROCS(0))
	}
	if l.Bodies == 0 {
		l.Bodies = bodies
	}
	g := &gate{Limit: l, next: handler, bodies: fairshare.New(l.Bodies, l.MaxBodyBytes),
		work: fairshare.New(l.Bytes, ordinary)}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, known := request.RequestInfoFrom(r.Context())
		by, found := request.UserFrom(r.Context())
		if !known || !found || l.LongRunning(r, info) {
			handler.ServeHTTP(w, r)
			return
		}
		if err := g.serve(w, r, info, by); err != nil {
			negotiated.Writer{Serializer: l.Serializer, Version: metav1.Unversioned}.Error(w, r, err)
		}
	})
}

var errNoRoom = apierrors.NewTimeoutError("the time was up before the server had room for so large a request", 1)

// gate is what large requests wait at.
type gate struct {
	Limit
	next http.Handler
	// bodies are those that are there or come, work is what is worked on.
	bodies, work *fairshare.Shares
}

// serve answers a request, or returns why it is not answered.
func (g *gate) serve(w http.ResponseWriter, r *http.Request, info *request.RequestInfo, by user.Info) error {
	client := fairshare.Client(by.GetName())
	sent, answer := requestbody.Length(r, g.MaxBodyBytes), &counted{ResponseWriter: w}
	n := weight(sent, g.known(info), fairshare.Trusted(by))
	if n > 0 {
		if sent >= objectsize.Large {
			if !g.bodies.Await(r.Context(), client, sent) {
				return errNoRoom
			}
			defer g.bodies.Give(client, sent)
		}
		if err := g.whole(r); err != nil {
			return err
		}
		took := g.work.AwaitSome(r.Context(), client, min(n, ordinary), n)
		if took == 0 {
			return errNoRoom
		}
		var passed chan struct{}
		give := sync.OnceFunc(func() {
			g.work.Give(client, took)
			if passed != nil {
				close(passed)
			}
		})
		defer give()
		if n > ordinary {
			passed = make(chan struct{})
			r = r.WithContext(context.WithValue(r.Context(), passedKey{}, passed))
			answer.begun = func() { contained.After(longest, "letting others go on beside a slow reader", give, nil) }
		}
	}
	aboutOne := info.IsResourceRequest && (info.Name != "" || info.Verb == "create")
	if aboutOne && n <= ordinary {
		g.next.ServeHTTP(w, r)
		return nil
	}
	g.next.ServeHTTP(responsewriter.WrapForHTTP1Or2(answer), r)
	if !aboutOne {
		g.Sizes.Answered(listOf(info), answer.length(), time.Now())
	}
	return nil
}

// passedKey is what others' going on stands under in the context of a large request.
type passedKey struct{}

// Passed is closed when others go on beside a large request: it is answered, or its answer is read slowly. It is nil
// for one that is not known to be large.
func Passed(ctx context.Context) <-chan struct{} {
	passed, _ := ctx.Value(passedKey{}).(chan struct{})
	return passed
}

// known is how large what the request is about is known to be. A create is about what it sends.
func (g *gate) known(info *request.RequestInfo) int64 {
	switch {
	case info.IsResourceRequest && info.Name != "":
		return g.Sizes.OfObject(objectsize.About(info))
	case info.Verb == "create":
		return 0
	default:
		return g.Sizes.OfList(listOf(info), time.Now())
	}
}

func listOf(info *request.RequestInfo) objectsize.List {
	if !info.IsResourceRequest {
		return objectsize.List{Path: info.Path}
	}
	return objectsize.List{Resource: schema.GroupResource{Group: info.APIGroup, Resource: info.Resource},
		Namespace: info.Namespace}
}

// whole waits for the body, so that no other request waits for its sender.
func (g *gate) whole(r *http.Request) error {
	if r.Body == nil {
		return nil
	}
	_, err := requestbody.Whole(r, g.MaxBodyBytes)
	return err
}

// counted counts the bytes of an answer.
type counted struct {
	http.ResponseWriter
	written int64
	// begun is called before the first are sent, if it is not nil.
	begun func()
}

// Write implements http.ResponseWriter.
func (c *counted) Write(p []byte) (int, error) {
	if c.begun != nil {
		c.begun()
		c.begun = nil
	}
	n, err := c.ResponseWriter.Write(p)
	c.written += int64(n)
	return n, err
}

// Unwrap implements responsewriter.UserProvidedDecorator.
func (c *counted) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// length is about how many bytes were encoded.
func (c *counted) length() int64 {
	if c.Header().Get("Content-Encoding") == "" {
		return c.written
	}
	return max(c.written*packed, compressed)
}
