package election

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// field is where candidates of both kinds stand for one role.
type field struct {
	*testing.T
	api slowAPI

	mu       sync.Mutex // guards what follows
	leader   *candidate
	terms    []*candidate // who led, in order
	vacated  time.Time
	vacant   time.Duration // how long there was no leader the last time
	running  sync.WaitGroup
	standing []*candidate
}

// candidate is a process that may be killed, or cut off from the apiserver.
type candidate struct {
	name     string
	fallback bool
	cut      atomic.Bool
	dead     chan struct{}
	stop     context.CancelFunc
	windsUp  time.Duration
	api      *slowAPI
	// refused says why it could not write when it was to lead no more.
	refused error
}

var errCut = errors.New("no route to the apiserver")

func (c *candidate) RoundTrip(r *http.Request) (*http.Response, error) {
	select {
	case <-c.dead:
		return nil, errCut
	default:
	}
	if c.cut.Load() {
		return nil, errCut
	}
	return c.api.RoundTrip(r)
}

// start lets a candidate stand.
func (f *field) start(name string, fallback bool) *candidate {
	f.Helper()
	ctx, stop := context.WithCancel(f.Context())
	c := &candidate{name: name, fallback: fallback, dead: make(chan struct{}), stop: stop, api: &f.api,
		windsUp: time.Second}
	client, err := kubernetes.NewForConfig(&rest.Config{Host: "http://apiserver", Transport: c, QPS: -1,
		ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON}})
	if err != nil {
		f.Fatal(err)
	}
	e := newElector(name, client, silent{}, sinceTest)
	e.Fallback = fallback
	f.standing = append(f.standing, c)
	f.running.Go(func() { _ = e.Run(ctx, "test.role", func(ctx context.Context) error { return f.lead(ctx, c) }) })
	return c
}

func (f *field) lead(ctx context.Context, c *candidate) error {
	f.mu.Lock()
	if f.leader != nil {
		f.Errorf("%s leads beside %s", c.name, f.leader.name)
	}
	f.leader, f.terms, f.vacant = c, append(f.terms, c), time.Since(f.vacated)
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.leader, f.vacated = nil, time.Now()
	}()
	select {
	case <-ctx.Done():
	case <-c.dead:
		return nil
	}
	c.refused = mayWrite(ctx)
	select {
	case <-c.dead:
	case <-time.After(c.windsUp):
	}
	return nil
}

// kill ends a candidate as SIGKILL does: it writes nothing any more.
func (f *field) kill(c *candidate) {
	close(c.dead)
	f.ends(c)
}

// ends stops a candidate, which gives its role up if it can.
func (f *field) ends(c *candidate) {
	c.stop()
	for i := range f.standing {
		if f.standing[i] == c {
			f.standing = append(f.standing[:i], f.standing[i+1:]...)
			return
		}
	}
}

// leads says who does.
func (f *field) leads() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.leader == nil {
		return "nobody"
	}
	return f.leader.name
}

func (f *field) expect(name string) {
	f.Helper()
	if got := f.leads(); got != name {
		f.Fatalf("%s leads, want %s", got, name)
	}
}

// until returns how long it takes until the named one leads.
func (f *field) until(name string, patience time.Duration) time.Duration {
	f.Helper()
	began := time.Now()
	for time.Since(began) < patience {
		if f.leads() == name {
			return time.Since(began)
		}
		time.Sleep(10 * time.Millisecond)
	}
	f.Fatalf("%s does not lead within %v: %s does", name, patience, f.leads())
	return 0
}

func (f *field) led() (names []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.terms {
		names = append(names, c.name)
	}
	return names
}

func onField(t *testing.T, test func(*field)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := &field{T: t}
		defer func() {
			for len(f.standing) > 0 {
				f.ends(f.standing[0])
			}
			f.running.Wait()
		}()
		test(f)
	})
}

// A fallback leads at once if there is no other candidate, and hands over to a preferred one in seconds.
func TestAFallbackHandsOver(t *testing.T) {
	onField(t, func(f *field) {
		fallback := f.start("fallback", true)
		time.Sleep(time.Second)
		f.expect("fallback")
		f.start("preferred", false)
		time.Sleep(10*time.Second - time.Millisecond)
		f.expect("fallback") // A candidate that ends soon after its start takes nothing.
		f.until("preferred", 10*time.Second)
		if f.vacant > 4*time.Second {
			t.Errorf("nobody led for %v", f.vacant)
		}
		if fallback.refused != nil {
			t.Errorf("what it had under way could not be written: %v", fallback.refused)
		}
		time.Sleep(10 * time.Minute)
		f.api.mu.Lock()
		before := f.api.written
		f.api.mu.Unlock()
		time.Sleep(10 * time.Minute)
		f.api.mu.Lock()
		written := f.api.written - before
		f.api.mu.Unlock()
		if written != 300 {
			t.Errorf("%d writes in 10 minutes, want the leader's 300 renewals alone", written)
		}
		if got := fmt.Sprint(f.led()); got != "[fallback preferred]" {
			t.Errorf("%s led", got)
		}
	})
}

// Preferred candidates that wait take over from one that leads, before any fallback.
func TestPreferredCandidatesFollowEachOther(t *testing.T) {
	onField(t, func(f *field) {
		f.start("fallback", true)
		time.Sleep(time.Second)
		first := f.start("first", false)
		f.until("first", 20*time.Second)
		second := f.start("second", false)
		time.Sleep(time.Minute)
		f.ends(first)
		f.until("second", 6*time.Second)
		third := f.start("third", false)
		time.Sleep(time.Minute)
		f.kill(second)
		f.until("third", 18*time.Second)
		// Its container is started again.
		f.kill(third)
		time.Sleep(20 * time.Second)
		f.start("fourth", false)
		f.until("fourth", 15*time.Second)
		if got := fmt.Sprint(f.led()); got != "[fallback first second third fourth]" {
			t.Errorf("%s led", got)
		}
	})
}

// A fallback takes back a Lease without a candidate: in about a minute after a kill, sooner if it was given up.
func TestAFallbackTakesBack(t *testing.T) {
	for _, test := range []struct {
		name        string
		end         func(*field, *candidate)
		least, most time.Duration
	}{
		{"killed", (*field).kill, 42 * time.Second, 66 * time.Second},
		{"stopped", (*field).ends, 20 * time.Second, 30 * time.Second},
		{"cut off", func(_ *field, c *candidate) { c.cut.Store(true) }, 42 * time.Second, 66 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			onField(t, func(f *field) {
				f.start("fallback", true)
				time.Sleep(time.Second)
				for round := range 3 {
					name := fmt.Sprint("preferred", round)
					preferred := f.start(name, false)
					f.until(name, 20*time.Second)
					time.Sleep(time.Duration(round) * 1700 * time.Millisecond)
					test.end(f, preferred)
					if took := f.until("fallback", test.most); took < test.least {
						t.Errorf("it took the role back after %v, want %v at least", took, test.least)
					}
					if preferred.cut.Load() {
						preferred.cut.Store(false)
						f.until(name, 20*time.Second)
						f.kill(preferred)
						f.until("fallback", test.most)
					}
				}
			})
		})
	}
}

// A candidate that asked for the Lease and is gone before it got it leaves the Lease vacant for no longer than a
// leader.
func TestWhoAskedMayGo(t *testing.T) {
	onField(t, func(f *field) {
		fallback := f.start("fallback", true)
		fallback.windsUp = 3 * time.Second
		time.Sleep(time.Second)
		preferred := f.start("preferred", false)
		for f.leads() == "fallback" {
			f.api.mu.Lock()
			asked := f.api.lease.Annotations[preferredAnnotation] != ""
			f.api.mu.Unlock()
			if asked {
				f.kill(preferred)
				break
			}
			time.Sleep(time.Millisecond)
		}
		time.Sleep(6 * time.Second)
		f.expect("nobody")
		f.until("fallback", 30*time.Second)
	})
}

// A fallback that starts again, as with the machine, waits for the candidate that was preferred before, but not for
// ever.
func TestAFallbackThatStartsAnewWaits(t *testing.T) {
	onField(t, func(f *field) {
		f.start("fallback", true)
		preferred := f.start("preferred", false)
		f.until("preferred", 20*time.Second)
		f.kill(f.standing[0])
		f.kill(preferred)
		time.Sleep(time.Hour)
		again := f.start("again", true)
		time.Sleep(30 * time.Second)
		f.expect("nobody")
		next := f.start("next", false)
		f.until("next", 15*time.Second)
		f.kill(next)
		f.until("again", 66*time.Second)
		// What a fallback took is any fallback's.
		f.ends(again)
		f.start("last", true)
		f.until("last", 6*time.Second)
	})
}

// While the apiserver is away no candidate renews, and none is taken for gone.
func TestAnAwayAPIServerIsNoAbsence(t *testing.T) {
	onField(t, func(f *field) {
		fallback, preferred := f.start("fallback", true), f.start("preferred", false)
		f.until("preferred", 20*time.Second)
		for _, away := range []time.Duration{30 * time.Second, time.Minute, time.Hour} {
			fallback.cut.Store(true)
			preferred.cut.Store(true)
			time.Sleep(away)
			fallback.cut.Store(false)
			time.Sleep(20 * time.Second) // The fallback reaches it first.
			preferred.cut.Store(false)
			f.until("preferred", 30*time.Second)
			time.Sleep(time.Minute)
			f.expect("preferred")
		}
		for _, name := range f.led()[1:] {
			if name == "fallback" {
				t.Fatalf("%s led", f.led())
			}
		}
	})
}

// A Lease that is asked for while it is being given up is given up.
func TestReleaseOfALeaseThatIsAskedFor(t *testing.T) {
	client := leases()
	e := elector(client, "us")
	lock := &leaseLock{leases: client.CoordinationV1().Leases(Namespace), role: "test.role", identity: "us"}
	other := &leaseLock{leases: lock.leases, role: lock.role, identity: "them"}
	record := resourcelock.LeaderElectionRecord{HolderIdentity: "us"}
	if err := lock.Create(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	asked := false
	client.PrependReactor("update", "leases", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if asked {
			return false, nil, nil
		}
		asked = true
		return true, nil, apierrors.NewConflict(action.GetResource().GroupResource(), lock.role, errors.New("changed"))
	})
	if err := e.release(lock); err != nil {
		t.Fatal(err)
	}
	if _, _, err := other.Get(t.Context()); err != nil || other.view().holder != "" {
		t.Errorf("%q holds it, %v", other.view().holder, err)
	}
}

// Whichever candidates come, go, are killed or cut off, and when: there is one leader at most, and once it is quiet the
// right one.
func TestHandOversOfAllKinds(t *testing.T) {
	for seed := range uint64(12) {
		onField(t, func(f *field) {
			r := rand.New(rand.NewPCG(seed, 7))
			for step := range 60 {
				f.disturb(r, step)
				time.Sleep(time.Duration(r.Int64N(int64(25 * time.Second))))
				if step%20 == 19 {
					f.settles()
				}
			}
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		})
	}
}

// disturb does one thing at random.
func (f *field) disturb(r *rand.Rand, step int) {
	f.Helper()
	if len(f.standing) == 0 || len(f.standing) < 4 && r.IntN(3) == 0 {
		fallback := r.IntN(2) == 0
		f.start(fmt.Sprint(map[bool]string{true: "fallback", false: "preferred"}[fallback], step), fallback)
		return
	}
	c := f.standing[r.IntN(len(f.standing))]
	switch r.IntN(5) {
	case 0:
		f.kill(c)
	case 1:
		f.ends(c)
	case 2:
		f.api.set([]time.Duration{0, 0, 0, 700 * time.Millisecond, 2500 * time.Millisecond}[r.IntN(5)])
	default:
		c.cut.Store(!c.cut.Load())
	}
}

// settles lets those that stand be, and expects a leader of the kind that is to lead.
func (f *field) settles() {
	f.Helper()
	f.api.set(0)
	fallback := true
	for _, c := range f.standing {
		c.cut.Store(false)
		fallback = fallback && c.fallback
	}
	time.Sleep(4 * time.Minute)
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case len(f.standing) == 0:
	case f.leader == nil:
		f.Errorf("nobody leads of %d", len(f.standing))
	case f.leader.fallback != fallback:
		f.Errorf("%s leads", f.leader.name)
	}
}
