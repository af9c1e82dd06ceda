package evict

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/election"
	"keelson.dev/services/scheduler/internal/bind"
)

// api is an API server that knows one version of each Pod. It notes what is asked of it, and answers with the next
// error that is given for it.
type api struct {
	*fake.Clientset
	pods  map[string]*corev1.Pod
	asked []string
	fails map[string][]error // by "verb name"; nil passes once
}

func newAPI(pods ...*corev1.Pod) *api {
	a := &api{Clientset: fake.NewClientset(), pods: map[string]*corev1.Pod{}, fails: map[string][]error{}}
	for _, p := range pods {
		a.pods[p.Name] = p
	}
	a.PrependReactor("*", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		switch action := action.(type) {
		case clienttesting.PatchAction:
			return a.answer("mark", action.GetName(), "", func(p *corev1.Pod) *corev1.Pod { return a.mark(p, action) })
		case clienttesting.DeleteAction:
			return a.answer("delete", action.GetName(), options(action.GetDeleteOptions()),
				func(*corev1.Pod) *corev1.Pod { return nil })
		case clienttesting.GetAction:
			return a.answer("get", action.GetName(), "", func(p *corev1.Pod) *corev1.Pod { return p })
		}
		return false, nil, nil
	})
	return a
}

func (a *api) answer(verb, name, more string, change func(*corev1.Pod) *corev1.Pod) (bool, runtime.Object, error) {
	a.asked = append(a.asked, verb+" "+name+more)
	if fails := a.fails[verb+" "+name]; len(fails) > 0 {
		a.fails[verb+" "+name] = fails[1:]
		if fails[0] != nil {
			return true, nil, fails[0]
		}
	}
	p := a.pods[name]
	if p == nil {
		return true, nil, apierrors.NewNotFound(corev1.Resource("pods"), name)
	}
	now := change(p.DeepCopy())
	if a.pods[name] = now; now == nil {
		return true, nil, nil
	}
	return true, now.DeepCopy(), nil
}

// mark takes over a condition, for the version that is known only.
func (a *api) mark(p *corev1.Pod, action clienttesting.PatchAction) *corev1.Pod {
	var patch corev1.Pod
	if err := json.Unmarshal(action.GetPatch(), &patch); err != nil {
		panic(err)
	}
	if action.GetSubresource() != "status" || patch.UID != p.UID || patch.ResourceVersion != p.ResourceVersion {
		panic(fmt.Sprintf("patched %s of %s at %s", action.GetSubresource(), patch.UID, patch.ResourceVersion))
	}
	p.Status.Conditions = patch.Status.Conditions
	p.ResourceVersion += "+"
	return p
}

// options are what a deletion asks beyond the name: nothing but the version that was looked at.
func options(o metav1.DeleteOptions) string {
	text := ""
	if p := o.Preconditions; p != nil {
		text = fmt.Sprintf(" %s at %s", ptr.Deref(p.UID, ""), ptr.Deref(p.ResourceVersion, ""))
	}
	o.Preconditions = nil
	if o.GracePeriodSeconds != nil || o.PropagationPolicy != nil {
		text += fmt.Sprintf(" with %+v", o)
	}
	return text
}

func victim(name string, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name),
		ResourceVersion: "1", Generation: 3},
		Spec: corev1.PodSpec{TerminationGracePeriodSeconds: ptr.To[int64](7)}}
	for _, c := range change {
		c(p)
	}
	return p
}

func ended(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }

func failed(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }

func leaving(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} }

func replaced(p *corev1.Pod) { p.UID = "another" }

func changed(p *corev1.Pod) { p.ResourceVersion = "2" }

func markedAs(reason string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue,
			Reason: reason}}
	}
}

// run evicts and returns the outcome and what was asked for, the nomination as the others.
func run(t *testing.T, a *api, nominate error, victims ...*corev1.Pod) (out Outcome) {
	t.Helper()
	synctest.Test(t, func(*testing.T) {
		e := New(a.CoreV1(), func(_ context.Context, p *corev1.Pod, c corev1.PodCondition, node string) error {
			a.asked = append(a.asked, fmt.Sprintf("nominate %s for %s (%s)", p.Name, node, c.Message))
			return nominate
		}, &bind.Terms{}, func(o Outcome) { out = o })
		e.Evict(t.Context(), Eviction{Pod: victim("p", func(p *corev1.Pod) { p.Spec.SchedulerName = "mine" }),
			Node:      "n",
			Condition: corev1.PodCondition{Message: "why"}, Victims: victims})
		e.Wait()
	})
	return out
}

const nominated = "nominate p for n (why)"

var (
	conflict  = apierrors.NewConflict(corev1.Resource("pods"), "a", errors.New("changed"))
	notFound  = apierrors.NewNotFound(corev1.Resource("pods"), "a")
	forbidden = apierrors.NewForbidden(corev1.Resource("pods"), "a", errors.New("no"))
	invalid   = apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Pod").GroupKind(), "a", nil)
	errLost   = errors.New("connection reset")
)

// One victim, what is asked of the API in turn, and what becomes of it. SCH-041, SCH-044, SCH-050, SAF-065, SAF-159
func TestOneVictim(t *testing.T) {
	const deleted = "delete a uid-a at 1+"
	again := func(steps ...string) (all []string) {
		for range 5 {
			all = append(all, steps...)
		}
		return all
	}
	for name, test := range map[string]struct {
		known   *corev1.Pod // by the scheduler
		now     *corev1.Pod // at the API server; nil: as it is known
		fails   map[string][]error
		asked   []string
		evicted bool
		err     string
	}{
		"marked, then deleted with its own grace": {asked: []string{"mark a", deleted}, evicted: true},
		"marked already": {known: victim("a", markedAs("PreemptionByScheduler")),
			asked:   []string{"delete a uid-a at 1"},
			evicted: true},
		"marked by another": {known: victim("a", markedAs("EvictionByEvictionAPI")), asked: []string{"mark a", deleted},
			evicted: true},
		"known to leave":         {known: victim("a", leaving)},
		"known to have ended":    {known: victim("a", ended)},
		"known to have failed":   {known: victim("a", failed)},
		"gone before it is told": {fails: map[string][]error{"mark a": {notFound}}, asked: []string{"mark a"}},
		"gone before it is deleted": {fails: map[string][]error{"delete a": {notFound}},
			asked: []string{"mark a", deleted}},
		"changed": {now: victim("a", changed), fails: map[string][]error{"mark a": {conflict}},
			asked: []string{"mark a", "get a", "mark a", "delete a uid-a at 2+"}, evicted: true},
		"changed after the mark": {fails: map[string][]error{"delete a": {conflict}},
			asked: []string{"mark a", deleted, "get a", deleted}, evicted: true},
		"ended meanwhile": {now: victim("a", ended), fails: map[string][]error{"mark a": {conflict}},
			asked: []string{"mark a", "get a"}},
		"failed meanwhile": {now: victim("a", failed), fails: map[string][]error{"mark a": {conflict}},
			asked: []string{"mark a", "get a"}},
		"deleted by somebody meanwhile": {now: victim("a", leaving), fails: map[string][]error{"mark a": {conflict}},
			asked: []string{"mark a", "get a"}},
		"another of its name": {now: victim("a", replaced), fails: map[string][]error{"mark a": {conflict}},
			asked: []string{"mark a", "get a"}},
		"gone when looked at": {fails: map[string][]error{"mark a": {conflict}, "get a": {notFound}},
			asked: []string{"mark a", "get a"}},
		"the answer to the deletion lost, and it leaves": {now: victim("a"), fails: map[string][]error{
			"delete a": {errLost}, "get a": {notFound}}, asked: []string{"mark a", deleted, "get a"}, evicted: true},
		"the answer to the deletion lost, and it was not made": {fails: map[string][]error{"delete a": {errLost}},
			asked: []string{"mark a", deleted, "get a", deleted}, evicted: true},
		"the look fails, too": {fails: map[string][]error{"mark a": {errLost}, "get a": {errLost}},
			asked: []string{"mark a", "get a", "get a", "mark a", deleted}, evicted: true},
		"forbidden": {fails: map[string][]error{"mark a": {forbidden}}, asked: []string{"mark a"},
			err: "marking victim ns/a: " + forbidden.Error()},
		"the deletion forbidden": {fails: map[string][]error{"delete a": {forbidden}},
			asked: []string{"mark a", deleted}, err: "deleting victim ns/a: " + forbidden.Error()},
		"invalid": {fails: map[string][]error{"mark a": {invalid}}, asked: []string{"mark a"},
			err: "marking victim ns/a: " + invalid.Error()},
		"the lead is lost": {fails: map[string][]error{"mark a": {election.ErrNotLeading}}, asked: []string{"mark a"},
			err: "marking victim ns/a: " + election.ErrNotLeading.Error()},
		"it changes all the time": {fails: map[string][]error{"mark a": {conflict, conflict, conflict, conflict,
			conflict}},
			asked: again("mark a", "get a")[:9], err: "marking victim ns/a: " + conflict.Error()},
		"nobody answers": {fails: map[string][]error{"mark a": {errLost},
			"get a": {errLost, errLost, errLost, errLost}},
			asked: []string{"mark a", "get a", "get a", "get a", "get a"},
			err:   "looking at victim ns/a: connection reset"},
	} {
		t.Run(name, func(t *testing.T) {
			known := test.known
			if known == nil {
				known = victim("a")
			}
			now := test.now
			if now == nil {
				now = known.DeepCopy()
			}
			a := newAPI(now)
			a.fails = test.fails
			out := run(t, a, nil, known)
			if want := append([]string{nominated}, test.asked...); !slices.Equal(a.asked, want) {
				t.Errorf("asked for %q, want %q", a.asked, want)
			}
			spared := test.err != ""
			if (len(out.Evicted) == 1) != test.evicted || (len(out.Spared) == 1) != spared ||
				text(out.Err) != test.err {
				t.Errorf("evicted %d, spared %v, error %v", len(out.Evicted), out.Spared, out.Err)
			}
		})
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// What the mark says. SAF-064, SAF-066
func TestMark(t *testing.T) {
	a := newAPI(victim("a"))
	a.fails["delete a"] = []error{forbidden}
	run(t, a, nil, victim("a"))
	got := a.pods["a"].Status.Conditions
	if len(got) != 1 || got[0].LastTransitionTime.IsZero() {
		t.Fatalf("the conditions are %+v", got)
	}
	got[0].LastTransitionTime = metav1.Time{}
	if want := (corev1.PodCondition{Type: "DisruptionTarget", Status: corev1.ConditionTrue,
		Reason: "PreemptionByScheduler", Message: "mine: preempting to accommodate a higher priority pod",
		ObservedGeneration: 3}); got[0] != want {
		t.Errorf("the mark is %+v", got[0])
	}
}

// A nomination that is not written spares all; a victim that cannot be evicted spares only itself.
func TestSeveralVictims(t *testing.T) {
	a := newAPI(victim("a"), victim("b"), victim("c"))
	out := run(t, a, conflict, victim("a"), victim("b"))
	if !slices.Equal(a.asked, []string{nominated}) || !errors.Is(out.Err, conflict) || len(out.Evicted) > 0 ||
		!slices.Equal(out.Spared, []types.UID{"uid-a", "uid-b"}) {
		t.Errorf("without a nomination asked for %q: %+v", a.asked, out)
	}
	a.asked, a.fails["mark b"] = nil, []error{forbidden}
	out = run(t, a, nil, victim("a"), victim("b"), victim("c"))
	want := nominated + ", mark a, delete a uid-a at 1+, mark b, mark c, delete c uid-c at 1+"
	if got := strings.Join(a.asked, ", "); got != want {
		t.Errorf("asked for %s, want %s", got, want)
	}
	if len(out.Evicted) != 2 || !slices.Equal(out.Spared, []types.UID{"uid-b"}) || !errors.Is(out.Err, forbidden) {
		t.Errorf("evicted %d, spared %v, error %v", len(out.Evicted), out.Spared, out.Err)
	}
}

// An eviction that has begun is carried out when the process stops, and no more than 32 are under way.
func TestEvictionsGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = 32
		var begun atomic.Int32
		proceed := make(chan struct{})
		ctx, stop := context.WithCancel(t.Context())
		reports := make(chan Outcome, most+1)
		e := New(newAPI().CoreV1(), func(ctx context.Context, _ *corev1.Pod, _ corev1.PodCondition, _ string) error {
			begun.Add(1)
			<-proceed
			return ctx.Err()
		}, &bind.Terms{}, func(o Outcome) { reports <- o })
		for range most + 1 {
			e.Evict(ctx, Eviction{Pod: victim("p")})
		}
		stop()
		time.Sleep(time.Hour)
		if n := begun.Load(); n != most {
			t.Errorf("%d are under way, want %d", n, most)
		}
		close(proceed)
		e.Wait()
		for range most + 1 {
			if o := <-reports; o.Err != nil {
				t.Errorf("it was cut short: %v", o.Err)
			}
		}
	})
}
