package election

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
)

// beforeBubbles is before the moment at which the time of a synctest bubble begins.
var beforeBubbles = time.Date(1999, time.December, 31, 0, 0, 0, 0, time.UTC)

// sinceTest is a clock that a synctest bubble advances.
func sinceTest() time.Duration { return time.Since(beforeBubbles) }

// server counts the requests that reach it, by method.
type server struct{ reads, writes atomic.Int32 }

func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet {
		s.reads.Add(1)
	} else {
		s.writes.Add(1)
	}
	return httptest.NewRecorder().Result(), nil
}

func send(ctx context.Context, t *testing.T, s *server, method string) error {
	t.Helper()
	config := Fence(&rest.Config{})
	request, err := http.NewRequestWithContext(ctx, method, "http://apiserver/", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	response, err := config.WrapTransport(s).RoundTrip(request)
	if err == nil {
		_ = response.Body.Close()
	}
	return err
}

func TestAFencedConnectionOnlyReadsOutsideOfATerm(t *testing.T) {
	s := &server{}
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		if err := send(t.Context(), t, s, method); !errors.Is(err, ErrNotLeading) {
			t.Errorf("%s without a term: %v", method, err)
		}
	}
	if err := send(t.Context(), t, s, http.MethodGet); err != nil {
		t.Errorf("GET without a term: %v", err)
	}
	if s.reads.Load() != 1 || s.writes.Load() != 0 {
		t.Errorf("%d reads and %d writes were sent", s.reads.Load(), s.writes.Load())
	}
}

// A process that sleeps does not see its clock advance step by step: it wakes, and the Lease is another's.
func TestAPausedLeaderWritesNothingAfterItsLease(t *testing.T) {
	for _, test := range []struct {
		name  string
		pause time.Duration
		sent  bool
	}{
		{"shorter than the 6 s that a renewal is relied upon", 5900 * time.Millisecond, true},
		{"that long", 6 * time.Second, false},
		{"longer than the Lease's 9 s", 15 * time.Second, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var slept atomic.Int64
				e := elector(leases(), "a")
				e.clock = func() time.Duration { return sinceTest() + time.Duration(slept.Load()) }
				ctx, stop := context.WithCancel(t.Context())
				over := make(chan struct{})
				s, terms := &server{}, 0
				go func() {
					defer close(over)
					_ = e.Run(ctx, "test.role", func(ctx context.Context) error {
						if terms++; terms > 1 {
							<-ctx.Done()
							return nil
						}
						if err := send(ctx, t, s, http.MethodPost); err != nil {
							t.Errorf("a leader's write: %v", err)
						}
						slept.Store(int64(test.pause))
						// What was under way keeps a context of its own.
						detached := context.WithoutCancel(ctx)
						if err := send(detached, t, s, http.MethodPost); (err == nil) != test.sent {
							t.Errorf("a write after a pause of %v: %v", test.pause, err)
						}
						if ended := ctx.Err() != nil; ended == test.sent {
							t.Errorf("the term has ended: %t", ended)
						}
						<-ctx.Done()
						return nil
					})
				}()
				time.Sleep(30 * time.Second)
				stop()
				<-over
				if want := map[bool]int{true: 1, false: 2}[test.sent]; terms != want {
					t.Errorf("led %d times, want %d: who woke too late stands for the role again", terms, want)
				}
			})
		})
	}
}

func TestALostTermIsNeverTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, terms := &server{}, 0
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var first context.Context
		_ = elector(leases(), "a").Run(ctx, "test.role", func(ctx context.Context) error {
			switch terms++; terms {
			case 1:
				first = ctx
			case 2:
				if err := send(context.WithoutCancel(first), t, s, http.MethodPut); !errors.Is(err, ErrNotLeading) {
					t.Errorf("a write of the term before: %v", err)
				}
				if err := send(WithTermOf(context.Background(), ctx), t, s, http.MethodPut); err != nil {
					t.Errorf("a write of this term: %v", err)
				}
				stop()
			}
			return nil
		})
		if s.writes.Load() != 1 {
			t.Errorf("%d writes were sent", s.writes.Load())
		}
	})
}

func TestALeaderThatReadsOfAnotherStopsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := leases()
		ctx, stop := context.WithCancel(t.Context())
		var stolen atomic.Bool
		client.PrependReactor("update", "leases", func(action clienttesting.Action) (bool, runtime.Object, error) {
			if !stolen.Load() {
				return false, nil, nil
			}
			return true, nil, errors.New("changed meanwhile")
		})
		client.PrependReactor("get", "leases", func(action clienttesting.Action) (bool, runtime.Object, error) {
			if !stolen.Load() {
				return false, nil, nil
			}
			holder, lasts := "b", int32(9)
			return true, &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder,
				LeaseDurationSeconds: &lasts}}, nil
		})
		over := make(chan struct{})
		go func() {
			defer close(over)
			_ = elector(client, "a").Run(ctx, "test.role", func(ctx context.Context) error {
				time.Sleep(3 * time.Second)
				stolen.Store(true)
				taken := time.Now()
				<-ctx.Done()
				// The next renewal is due 2 s after the last.
				if took := time.Since(taken); took > 2*time.Second {
					t.Errorf("went on for %v after another took the Lease", took)
				}
				return nil
			})
		}()
		time.Sleep(time.Minute)
		stop()
		<-over
	})
}

// A write that waits for others while the Lease runs out is not sent.
func TestAWriteThatWaitsIsFenced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now atomic.Int64
		term := &term{role: "test.role", clock: func() time.Duration { return time.Duration(now.Load()) },
			stop: func() {}, until: 6 * time.Second}
		ctx := context.WithValue(t.Context(), termKey{}, term)
		s := &slowServer{}
		over := FenceJoined(&rest.Config{}).WrapTransport(s)
		write := func() error {
			const pod = "http://apiserver/api/v1/namespaces/n/pods/p"
			request, err := http.NewRequestWithContext(ctx, http.MethodDelete, pod, nil)
			if err != nil {
				return err
			}
			_, err = over.RoundTrip(request)
			return err
		}
		errs := make(chan error, 3)
		for range 3 {
			go func() { errs <- write() }()
			synctest.Wait()
		}
		now.Store(int64(6 * time.Second))
		for i, want := range []error{ErrNotLeading, ErrNotLeading, nil} {
			if err := <-errs; !errors.Is(err, want) {
				t.Errorf("outcome %d: %v, want %v", i, err, want)
			}
		}
		if n := s.writes.Load(); n != 1 {
			t.Errorf("%d requests were sent, want the first alone", n)
		}
	})
}

// slowServer takes 10 ms for an answer.
type slowServer struct{ server }

func (s *slowServer) RoundTrip(r *http.Request) (*http.Response, error) {
	time.Sleep(10 * time.Millisecond)
	return s.server.RoundTrip(r)
}
