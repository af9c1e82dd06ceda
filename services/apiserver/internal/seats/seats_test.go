package seats_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	utilflowcontrol "k8s.io/apiserver/pkg/util/flowcontrol"
	"k8s.io/apiserver/pkg/util/flowcontrol/fairqueuing"
	flowcontrolrequest "k8s.io/apiserver/pkg/util/flowcontrol/request"
	"k8s.io/client-go/kubernetes/scheme"

	"keelson.dev/services/apiserver/internal/largework"
	"keelson.dev/services/apiserver/internal/objectsize"
	"keelson.dev/services/apiserver/internal/seats"
)

// oneSeat is priority and fairness with a seat that who comes first has. Who does not get it in time is refused.
type oneSeat struct {
	utilflowcontrol.Interface
	seat chan struct{}
}

// Handle implements utilflowcontrol.Interface.
func (o oneSeat) Handle(ctx context.Context, digest utilflowcontrol.RequestDigest,
	_ func(*flowcontrolv1.FlowSchema, *flowcontrolv1.PriorityLevelConfiguration, string),
	_ func() flowcontrolrequest.WorkEstimate, _ fairqueuing.QueueNoteFn, execute func()) {
	if digest.User.GetName() == "nobody" {
		panic("no such user")
	}
	select {
	case o.seat <- struct{}{}:
		defer func() { <-o.seat }()
		execute()
	case <-ctx.Done():
	}
}

// ask runs a request of the path through large work, which knows that of "/large" as large, and the seat.
type asker struct {
	handler http.Handler
	taken   oneSeat
}

func newAsker(serve http.HandlerFunc) asker {
	a := asker{taken: oneSeat{seat: make(chan struct{}, 1)}}
	sizes := &objectsize.Book{}
	sizes.Answered(objectsize.List{Path: "/large"}, 1<<20, time.Now())
	y := seats.Yielding{Interface: a.taken}
	a.handler = largework.Limit{MaxBodyBytes: 1 << 20, Sizes: sizes, Serializer: scheme.Codecs,
		LongRunning: func(*http.Request, *request.RequestInfo) bool { return false }}.With(
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			by, _ := request.UserFrom(r.Context())
			served := false
			y.Handle(r.Context(), utilflowcontrol.RequestDigest{User: by}, nil, nil, nil, func() {
				served = true
				serve(w, r)
			})
			if !served {
				w.WriteHeader(http.StatusTooManyRequests)
			}
		}))
	return a
}

func (a asker) ask(ctx context.Context, name, path string) int {
	ctx = request.WithUser(ctx, &user.DefaultInfo{Name: name})
	ctx = request.WithRequestInfo(ctx, &request.RequestInfo{Verb: "get", Path: path})
	w := httptest.NewRecorder()
	a.handler.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil))
	return w.Code
}

// A large answer that is read slowly keeps its seat for as long as it keeps others from working beside it, and no
// longer. One that has not begun keeps it, and so does a small one.
func TestASlowReaderKeepsNoSeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		read, work := make(chan struct{}), make(chan struct{})
		a := newAsker(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/quick" {
				return
			}
			<-work
			_, _ = w.Write([]byte(strings.Repeat("x", 100)))
			<-read
		})
		for _, row := range []struct {
			path  string
			begun bool
			want  int
		}{
			{"/large", false, http.StatusTooManyRequests},
			{"/large", true, http.StatusOK},
			{"/small", true, http.StatusTooManyRequests},
		} {
			slow := make(chan int, 1)
			go func() { slow <- a.ask(t.Context(), "ann", row.path) }()
			if row.begun {
				work <- struct{}{}
			}
			synctest.Wait()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			if got := a.ask(ctx, "bob", "/quick"); got != row.want {
				t.Errorf("beside %s, begun %t: %d, want %d", row.path, row.begun, got, row.want)
			}
			cancel()
			if !row.begun {
				work <- struct{}{}
			}
			read <- struct{}{}
			if got := <-slow; got != http.StatusOK {
				t.Errorf("the slow one: %d", got)
			}
			if synctest.Wait(); len(a.taken.seat) > 0 {
				t.Errorf("%s is answered and has a seat", row.path)
			}
		}
	})
}

// Who gets no seat is refused, and what breaks off ends the request and gives the seat back.
func TestLargeRequestsThatAreNotServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAsker(func(http.ResponseWriter, *http.Request) { panic("no such list") })
		breaks := func(name string) (said any) {
			defer func() { said = recover() }()
			a.ask(t.Context(), name, "/large")
			return nil
		}
		if got := breaks("ann"); got != "no such list" || len(a.taken.seat) > 0 {
			t.Errorf("a handler that breaks off: %v, %d seats are taken", got, len(a.taken.seat))
		}
		if got, is := breaks("nobody").(error); !is || !strings.Contains(got.Error(), "no such user") {
			t.Errorf("flow control that breaks off: %v", got)
		}
		a.taken.seat <- struct{}{}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if got := a.ask(ctx, "ann", "/large"); got != http.StatusTooManyRequests {
			t.Errorf("without a seat: %d", got)
		}
	})
}
