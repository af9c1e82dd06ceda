package election

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"

	"keelson.dev/kit/batch"
)

// answer is a request of a test: when it was sent, how long it took, whether it failed.
type answer struct {
	sent, took time.Duration
	failed     bool
}

// Leases are planned to be renewed every 2 s.
func TestPace(t *testing.T) {
	const s, ms = time.Second, time.Millisecond
	quick := func(from, to time.Duration) (answers []answer) {
		for at := from; at < to; at += s {
			answers = append(answers, answer{sent: at, took: 10 * ms})
		}
		return answers
	}
	for _, test := range []struct {
		name    string
		answers []answer
		want    int
	}{
		{"soon", quick(0, 5*s), 1},
		{"just below 2 s", []answer{{sent: s, took: 1999 * ms}}, 1},
		{"2 s", []answer{{sent: s, took: 2 * s}}, 2},
		{"2 s without success", []answer{{sent: s, took: 2 * s, failed: true}}, 2},
		{"all roles at the same moment", []answer{{sent: s, took: 5 * s}, {sent: s, took: 5 * s},
			{sent: 5999 * ms, took: 5 * s}}, 2},
		{"just below 4 s the second time", []answer{{sent: s, took: 3 * s}, {sent: 4 * s, took: 3999 * ms}}, 2},
		{"4 s the second time", []answer{{sent: s, took: 3 * s}, {sent: 4 * s, took: 4 * s}}, 4},
		{"never more than 4 times", []answer{{sent: s, took: 3 * s}, {sent: 4 * s, took: 4 * s},
			{sent: 8 * s, took: 90 * s}}, 4},
		{"soon for less than a minute", append([]answer{{sent: s, took: 2 * s}}, quick(4*s, 62*s)...), 2},
		{"soon for a minute", append([]answer{{sent: s, took: 2 * s}}, quick(4*s, 64*s)...), 1},
		{"half of 4 after a minute", append([]answer{{sent: s, took: 3 * s}, {sent: 4 * s, took: 4 * s}},
			quick(8*s, 70*s)...), 2},
		{"1 s within the minute", append(append([]answer{{sent: s, took: 2 * s}}, quick(4*s, 40*s)...),
			append([]answer{{sent: 40 * s, took: s}}, quick(41*s, 100*s)...)...), 2},
		{"just below 1 s within the minute", append(append([]answer{{sent: s, took: 2 * s}}, quick(4*s, 40*s)...),
			append([]answer{{sent: 40 * s, took: 999 * ms}}, quick(41*s, 65*s)...)...), 1},
		{"refused at once for a minute", []answer{{sent: s, took: 2 * s}, {sent: 70 * s, failed: true}}, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := pace{stretch: 1}
			for _, a := range test.answers {
				p = p.after(a.sent, a.sent+a.took, a.failed, DefaultTiming)
			}
			if p.stretch != test.want {
				t.Errorf("%d times as long, want %d", p.stretch, test.want)
			}
		})
	}
}

// No leader relies on a Lease that a standby may take, no matter which renewals reach the server, which only seem
// to be lost, and how long each one lasts. A standby takes a Lease when it has seen no newer renewal for as long
// as the last one says.
func TestNoTermOutlastsWhatAStandbyMayHaveSeen(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		now := time.Duration(0)
		term := &term{clock: func() time.Duration { return now }, stop: func() {}}
		var free time.Duration // from when on a standby may lead that saw everything as soon as it was sent
		for range 10 {
			now += time.Duration(random.Int64N(int64(10 * time.Second)))
			timing := DefaultTiming.stretched([]int{1, 2, 4}[random.IntN(3)])
			sent := now
			term.renewing(sent, timing)
			reached, answered := random.IntN(3) > 0, random.IntN(3) > 0
			if reached {
				free = sent + timing.LeaseDuration
			}
			now += time.Duration(random.Int64N(int64(3 * time.Second)))
			if reached && answered {
				term.renewed(sent, timing)
			}
			if term.until > 0 && term.until > free-3*time.Second {
				t.Fatalf("relied upon until %v, free at %v: 3 s are to be left for a write on its way", term.until,
					free)
			}
		}
		_, _ = term.end()
	}
}

// slowAPI is an apiserver with one Lease that takes its time for each answer, and completes a request even if its
// client no longer waits.
type slowAPI struct {
	mu    sync.Mutex // guards what follows
	delay time.Duration
	lease *coordinationv1.Lease
	// written counts writes, version is that of the last.
	written int
}

func (s *slowAPI) set(delay time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.delay = delay
}

func (s *slowAPI) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
		_ = r.Body.Close()
	}
	s.mu.Lock()
	delay := s.delay
	s.mu.Unlock()
	done := make(chan *http.Response, 1)
	go func() {
		time.Sleep(delay)
		done <- s.serve(r, body)
	}()
	select {
	case answer := <-done:
		return answer, nil
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

func (s *slowAPI) serve(r *http.Request, body []byte) *http.Response {
	s.mu.Lock()
	defer s.mu.Unlock()
	failed := func(code int, reason metav1.StatusReason) *http.Response {
		return reply(r, code, &metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
			Status: metav1.StatusFailure, Reason: reason, Code: int32(code)})
	}
	if r.Method != http.MethodGet {
		sent := &coordinationv1.Lease{}
		if err := json.Unmarshal(body, sent); err != nil {
			return failed(http.StatusBadRequest, metav1.StatusReasonBadRequest)
		}
		if s.lease != nil && s.lease.ResourceVersion != sent.ResourceVersion {
			return failed(http.StatusConflict, metav1.StatusReasonConflict)
		}
		s.written++
		sent.ResourceVersion = time.Duration(s.written).String()
		s.lease = sent
	}
	if s.lease == nil {
		return failed(http.StatusNotFound, metav1.StatusReasonNotFound)
	}
	return reply(r, http.StatusOK, s.lease)
}

func reply(r *http.Request, code int, object any) *http.Response {
	content, _ := json.Marshal(object)
	return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewReader(content)), Request: r}
}

func (s *slowAPI) client(t *testing.T) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(&rest.Config{Host: "http://apiserver", Transport: s, QPS: -1,
		ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON}})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// A machine that has become so slow that each answer takes longer than half of the 6 s within which Leases are to be
// renewed loses its roles once, and then leads on.
func TestASlowMachineLeadsOn(t *testing.T) {
	for _, delay := range []time.Duration{2500 * time.Millisecond, 4 * time.Second, 8 * time.Second} {
		t.Run(delay.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := &slowAPI{}
				ctx, stop := context.WithCancel(t.Context())
				terms, leading, over := 0, time.Duration(0), make(chan struct{})
				go func() {
					defer close(over)
					_ = newElector("a", api.client(t), silent{}, sinceTest).Run(ctx, "test.role",
						func(ctx context.Context) error {
							terms++
							began := time.Now()
							<-ctx.Done()
							leading += time.Since(began)
							return nil
						})
				}()
				time.Sleep(10 * time.Second)
				api.set(delay)
				time.Sleep(10 * time.Minute)
				stop()
				<-over
				time.Sleep(delay) // An abandoned request is still under way.
				if terms > 3 {
					t.Errorf("%d terms: each starts all of the role's work anew", terms)
				}
				if leading < 9*time.Minute {
					t.Errorf("led for %v of 10 minutes", leading)
				}
			})
		})
	}
}

// A machine that is slow renews a Lease every 8 s instead of every 2 s, and as before when it is no longer slow: a
// leader that is killed then is replaced within 20 s.
func TestRenewalsFollowThePace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &slowAPI{}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		over := make(chan struct{})
		go func() {
			defer close(over)
			_ = newElector("a", api.client(t), silent{}, sinceTest).Run(ctx, "test.role",
				func(ctx context.Context) error { <-ctx.Done(); return nil })
		}()
		for _, phase := range []struct {
			delay, settling time.Duration
			writes          int // in 2 minutes
			seconds         int32
		}{
			{0, 10 * time.Second, 60, 9},
			{4500 * time.Millisecond, time.Minute, 15, 36}, // every 8 s
			{0, 5 * time.Minute, 60, 9},
		} {
			api.set(phase.delay)
			time.Sleep(phase.settling)
			api.mu.Lock()
			before := api.written
			api.mu.Unlock()
			time.Sleep(2 * time.Minute)
			api.mu.Lock()
			writes, seconds := api.written-before, *api.lease.Spec.LeaseDurationSeconds
			api.mu.Unlock()
			if writes < phase.writes*9/10 || writes > phase.writes*11/10 {
				t.Errorf("%d writes in 2 minutes with answers after %v, want about %d", writes, phase.delay,
					phase.writes)
			}
			if seconds != phase.seconds {
				t.Errorf("the Lease lasts %d s with answers after %v, want %d", seconds, phase.delay, phase.seconds)
			}
		}
		stop()
		<-over
		time.Sleep(time.Second)
	})
}

// apiWithoutLeases answers after a moment that there are none, and remembers where requests went.
type apiWithoutLeases struct {
	mu    sync.Mutex // guards paths
	paths []string
}

func (a *apiWithoutLeases) RoundTrip(r *http.Request) (*http.Response, error) {
	a.mu.Lock()
	a.paths = append(a.paths, r.URL.Path)
	a.mu.Unlock()
	time.Sleep(10 * time.Millisecond)
	return reply(r, http.StatusNotFound, &metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status: metav1.StatusFailure, Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound}), nil
}

// What a process writes for several roles at the same moment goes together.
func TestRolesRenewTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &apiWithoutLeases{}
		elector, err := New(&rest.Config{Host: "http://apiserver", Transport: api, QPS: -1}, silent{}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		var roles sync.WaitGroup
		for _, role := range []string{"test.a", "test.b", "test.c"} {
			roles.Go(func() { _ = elector.Run(ctx, role, func(context.Context) error { return nil }) })
		}
		time.Sleep(time.Second)
		stop()
		roles.Wait()
		if !slices.Contains(api.paths, batch.Path) {
			t.Errorf("requests went to %q, want some to %s", api.paths, batch.Path)
		}
	})
}

// Renewals are planned for every 2 s and rely on 6 s.
func TestApart(t *testing.T) {
	const s, ms = time.Second, time.Millisecond
	for _, test := range []struct {
		name            string
		held            bool
		last, now, want time.Duration
	}{
		{"at the moment", true, 10 * s, 12 * s, 0},
		{"a quarter of a period late", true, 10 * s, 12*s + 500*ms, 0},
		{"later than that", true, 10*s + 502*ms, 12*s + 501*ms, 1499 * ms},
		{"early", true, 10 * s, 11*s + 750*ms, 250 * ms},
		{"until two periods after the last", true, 10 * s, 13 * s, s},
		{"not until later", true, 9999 * ms, 13 * s, 0},
		{"after one that failed", true, 10 * s, 15*s + 750*ms, 0},
		{"the Lease is still to be had", false, 0, 11 * s, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			term := &term{held: test.held, last: test.last}
			if got := term.apart(test.now, DefaultTiming.RetryPeriod); got != test.want {
				t.Errorf("waits %v, want %v", got, test.want)
			}
		})
	}
}

// Roles that were won at different moments are renewed at the same ones, every 2 s.
func TestRolesRenewAtTheSameMoments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := leases()
		var mu sync.Mutex // guards renewed
		renewed := map[time.Duration][]string{}
		client.PrependReactor("update", "leases", func(action clienttesting.Action) (bool, runtime.Object, error) {
			mu.Lock()
			defer mu.Unlock()
			lease := action.(clienttesting.UpdateAction).GetObject().(*coordinationv1.Lease)
			renewed[sinceTest()] = append(renewed[sinceTest()], lease.Name)
			if age := time.Since(lease.Spec.RenewTime.Time); age > 0 {
				t.Errorf("%s is said to have been renewed %v ago", lease.Name, age)
			}
			return false, nil, nil
		})
		e := elector(client, "a")
		ctx, stop := context.WithCancel(t.Context())
		var roles sync.WaitGroup
		for _, role := range []string{"test.a", "test.b", "test.c"} {
			time.Sleep(700 * time.Millisecond)
			roles.Go(func() {
				_ = e.Run(ctx, role, func(ctx context.Context) error { <-ctx.Done(); return nil })
			})
		}
		time.Sleep(10 * time.Second)
		mu.Lock()
		clear(renewed)
		mu.Unlock()
		time.Sleep(time.Minute)
		mu.Lock()
		if len(renewed) != 30 {
			t.Errorf("renewals at %d moments of a minute, want 30", len(renewed))
		}
		for at, names := range renewed {
			if at%(2*time.Second) != 0 || len(names) != 3 {
				t.Errorf("%q are renewed at %v, want each every 2 s", names, at)
			}
		}
		mu.Unlock()
		stop()
		roles.Wait()
	})
}

// A term ends when its leader no longer relies on its Lease, 6 s after the last renewal, even if nothing is written and
// the elector itself would go on trying.
func TestATermEndsByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, quit := context.WithCancel(t.Context())
		term := &term{clock: sinceTest, stop: func() {}, quit: quit, begun: true, done: make(chan struct{})}
		term.renewed(sinceTest(), DefaultTiming)
		time.Sleep(6*time.Second - time.Millisecond)
		if ctx.Err() != nil {
			t.Error("it has ended before")
		}
		time.Sleep(2 * time.Millisecond)
		if ctx.Err() == nil {
			t.Error("it has not ended")
		}
	})
}

// A Lease that ran out before the work began is not led with: its writes would all be refused.
func TestWorkDoesNotBeginInALostTerm(t *testing.T) {
	stopped := false
	term := &term{clock: func() time.Duration { return 0 }, stop: func() { stopped = true }, done: make(chan struct{})}
	term.lose()
	term.serve(t.Context(), t.Context(), func(context.Context) error { return errors.New("it began") })
	if served, err := term.end(); served || err != nil || !stopped {
		t.Errorf("served %t, %v; the election has ended: %t", served, err, stopped)
	}
}
