package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"keelson.dev/kit/conditions"
	"keelson.dev/kit/daemon"
	"keelson.dev/kit/election"
	"keelson.dev/kit/events"
	"keelson.dev/kit/failpoint"
	"keelson.dev/kit/introspect"
	"keelson.dev/services/scheduler/internal/bind"
	"keelson.dev/services/scheduler/internal/config"
	"keelson.dev/services/scheduler/internal/evict"
	"keelson.dev/services/scheduler/internal/feed"
)

// stage is a loop with an API server that takes bindings and patches, and shows them to the loop as a watch would.
type stage struct {
	t    *testing.T
	loop *loop

	mu      sync.Mutex
	pods    map[string]*corev1.Pod
	version int
	events  []string
	wrote   []string // bindings and conditions, in order
	refuse  error    // the answer to the next binding
}

// play runs the test in a bubble with the loop running and leading.
func play(t *testing.T, test func(*stage)) {
	playWith(t, Config{Environment: daemon.NewEnvironment(name), Scheduler: config.Default(), Seed: 1}, nil, test)
}

// playWith is play with a configuration, and with what is to be added to the stage.
func playWith(t *testing.T, c Config, add func(*stage, *fake.Clientset), test func(*stage)) {
	synctest.Test(t, func(t *testing.T) {
		s := &stage{t: t, pods: map[string]*corev1.Pod{}}
		client := fake.NewClientset()
		client.PrependReactor("create", "pods", s.bind)
		client.PrependReactor("patch", "pods", s.patch)
		client.PrependReactor("delete", "pods", s.delete)
		client.PrependReactor("get", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			return true, s.pods[a.(clienttesting.GetAction).GetName()], nil
		})
		s.loop = newLoop(c, nil)
		s.loop.record = func(p *corev1.Pod, e events.Event) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.events = append(s.events, e.Type+" "+e.Reason+" "+p.Name+": "+e.Message)
		}
		s.loop.binder = bind.NewBinder(client.CoreV1(), nil, &bind.Terms{}, s.loop.bound)
		s.loop.statuses = bind.NewStatuses(client.CoreV1(), &bind.Terms{}, s.loop.unwritten)
		s.loop.recordAs = func(_ string, p *corev1.Pod, e events.Event) { s.loop.record(p, e) }
		s.loop.evictor = evict.New(client.CoreV1(), s.loop.statuses.Write, &bind.Terms{}, s.loop.evicted)
		if add != nil {
			add(s, client)
		}
		ctx, cancel := context.WithCancel(context.Background())
		var parts sync.WaitGroup
		parts.Go(func() { s.loop.run(ctx) })
		parts.Go(func() { s.loop.statuses.Run(ctx) })
		s.loop.do(func() { s.loop.cycle.Lead(corev1.DefaultSchedulerName, true, time.Now()) })
		test(s)
		cancel()
		parts.Wait()
	})
}

func (s *stage) bind(a clienttesting.Action) (bool, runtime.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := a.(clienttesting.CreateAction).GetObject().(*corev1.Binding)
	if err := s.refuse; err != nil {
		s.refuse = nil
		return true, nil, err
	}
	p := s.pods[b.Name].DeepCopy()
	if p.Spec.NodeName != "" {
		s.t.Errorf("pod %s is bound twice", b.Name)
	}
	p.Spec.NodeName = b.Target.Name
	s.wrote = append(s.wrote, "bind "+b.Name+" to "+b.Target.Name)
	s.store(p)
	return true, nil, nil
}

func (s *stage) patch(a clienttesting.Action) (bool, runtime.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var body struct {
		Metadata metav1.ObjectMeta
		Status   corev1.PodStatus
	}
	if err := json.Unmarshal(a.(clienttesting.PatchAction).GetPatch(), &body); err != nil {
		s.t.Error(err)
	}
	name := a.(clienttesting.PatchAction).GetName()
	p := s.pods[name].DeepCopy()
	if body.Metadata.ResourceVersion != p.ResourceVersion {
		return true, nil, apierrors.NewConflict(corev1.Resource("pods"), name, errors.New("changed"))
	}
	c := body.Status.Conditions[0]
	p.Status.Conditions, _ = conditions.Pod.Set(p.Status.Conditions, c, time.Now())
	line := "status " + name + ": " + c.Message
	if len(body.Status.NominatedNodeName) > 0 {
		line += " -> " + body.Status.NominatedNodeName
	}
	if bytes.Contains(a.(clienttesting.PatchAction).GetPatch(), []byte("nominatedNodeName")) {
		p.Status.NominatedNodeName = body.Status.NominatedNodeName
	}
	s.wrote = append(s.wrote, line)
	s.store(p)
	return true, p, nil
}

// delete begins the end of a Pod, as its grace period asks.
func (s *stage) delete(a clienttesting.Action) (bool, runtime.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	action := a.(clienttesting.DeleteActionImpl)
	p := s.pods[action.GetName()]
	is := action.DeleteOptions.Preconditions
	switch {
	case p == nil:
		return true, nil, apierrors.NewNotFound(corev1.Resource("pods"), action.GetName())
	case action.DeleteOptions.GracePeriodSeconds != nil || is == nil || *is.UID != p.UID:
		s.t.Errorf("deletes %s by %+v", p.Name, action.DeleteOptions)
	case is.ResourceVersion == nil || *is.ResourceVersion != p.ResourceVersion:
		return true, nil, apierrors.NewConflict(corev1.Resource("pods"), p.Name, errors.New("changed"))
	}
	p = p.DeepCopy()
	p.DeletionTimestamp = &metav1.Time{Time: time.Now().Add(30 * time.Second)}
	s.wrote = append(s.wrote, "delete "+p.Name)
	s.store(p)
	return true, nil, nil
}

// tell delivers a change.
func (s *stage) tell(c feed.Change, known bool) {
	if !known {
		s.t.Error("a kind that is not watched")
		return
	}
	s.loop.deliver(c)
}

// end takes a Pod away.
func (s *stage) end(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.pods[name]
	delete(s.pods, name)
	s.tell(feed.Removed(p))
}

// store keeps the Pod and shows it to the loop; mu is held.
func (s *stage) store(p *corev1.Pod) {
	s.version++
	p.ResourceVersion = fmt.Sprint(s.version)
	s.pods[p.Name] = p
	s.tell(feed.Set(p))
}

func (s *stage) pod(name, cpu string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.store(newPod(name, cpu))
}

func newPod(name, cpu string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name)},
		Spec: corev1.PodSpec{SchedulerName: corev1.DefaultSchedulerName,
			Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}}}},
	}
}

func (s *stage) node(name, cpu string) {
	s.tell(feed.Set(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name},
		Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourcePods: resource.MustParse("100")}}}))
}

// wait lets time pass, which in the bubble takes none.
func (s *stage) wait(d time.Duration) { <-time.After(d) }

// want waits until nothing moves and compares what was written.
func (s *stage) want(lines ...string) {
	s.t.Helper()
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Equal(s.wrote, lines) {
		s.t.Errorf("wrote\n%s\nwant\n%s", strings.Join(s.wrote, "\n"), strings.Join(lines, "\n"))
	}
	s.wrote = nil
}

// wantInAnyOrder is want for writes about several Pods, of which none waits for another.
func (s *stage) wantInAnyOrder(lines ...string) {
	s.t.Helper()
	synctest.Wait()
	s.mu.Lock()
	slices.Sort(s.wrote)
	s.mu.Unlock()
	s.want(slices.Sorted(slices.Values(lines))...)
}

func (s *stage) wantEvents(lines ...string) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Equal(s.events, lines) {
		s.t.Errorf("events are\n%s\nwant\n%s", strings.Join(s.events, "\n"), strings.Join(lines, "\n"))
	}
	s.events = nil
}

// POD-025, POD-220: a Pod is bound once, and the event says where.
func TestPodIsBound(t *testing.T) {
	play(t, func(s *stage) {
		s.node("n", "4")
		s.pod("p", "1")
		s.want("bind p to n")
		s.wantEvents("Normal Scheduled p: Successfully assigned ns/p to n")
		s.wait(time.Hour)
		s.want()
	})
}

// tooLittle is said of a Pod that is too large for the only node.
const tooLittle = "0/1 nodes are available: 1 Insufficient cpu. " +
	"preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."

// SCH-033: condition and event of a Pod that fits nowhere; both once while nothing changes. SAF-062: then it waits.
func TestPodThatFitsNowhere(t *testing.T) {
	play(t, func(s *stage) {
		s.node("n", "4")
		s.pod("p", "5")
		s.want("status p: " + tooLittle)
		s.wantEvents("Warning FailedScheduling p: " + tooLittle)
		s.wait(time.Minute)
		s.want()
		s.wantEvents()
		s.node("n", "5")
		s.want("bind p to n")
	})
}

// SCH-032: a Pod whose binding was refused is tried again after a delay, and its room is free meanwhile.
func TestRefusedBinding(t *testing.T) {
	play(t, func(s *stage) {
		s.refuse = apierrors.NewForbidden(corev1.Resource("pods"), "p", errors.New("no"))
		s.node("n", "4")
		s.pod("p", "4")
		s.want()
		s.wantEvents(`Warning FailedScheduling p: binding to n: pods "p" is forbidden: no`)
		s.pod("q", "1")
		s.want("bind q to n")
		s.wait(999 * time.Millisecond)
		s.want()
		s.wait(time.Millisecond)
		s.want("status p: 0/1 nodes are available: 1 Insufficient cpu. " +
			"preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod.")
	})
}

// A Pod that is gone, and one that another leader decides for, get no status.
func TestBindingThatNobodyHearsOf(t *testing.T) {
	for name, refusal := range map[string]error{"gone": apierrors.NewNotFound(corev1.Resource("pods"), "p"),
		"led elsewhere": election.ErrNotLeading} {
		t.Run(name, func(t *testing.T) {
			play(t, func(s *stage) {
				s.refuse = refusal
				s.node("n", "4")
				s.pod("p", "4")
				s.want()
				s.wantEvents()
			})
		})
	}
}

// The process stops between the write and the answer: the Pod is found bound and not bound again. POD-026, SAF-121
func TestLostAnswer(t *testing.T) {
	play(t, func(s *stage) {
		if err := failpoint.Arm("scheduler/bind.after", "1*error(lost)"); err != nil {
			t.Fatal(err)
		}
		defer failpoint.Disarm("scheduler/bind.after")
		s.node("n", "4")
		s.pod("p", "1")
		s.want("bind p to n")
		s.wait(time.Hour)
		s.want()
		s.wantEvents("Normal Scheduled p: Successfully assigned ns/p to n")
	})
}

// A status that was decided for an old version of the Pod is written for the newest.
func TestStatusFollowsThePod(t *testing.T) {
	play(t, func(s *stage) {
		s.node("n", "4")
		s.mu.Lock()
		s.version = 99
		s.store(newPod("p", "5"))
		s.pods["p"] = s.pods["p"].DeepCopy()
		s.pods["p"].ResourceVersion = "somebody else's" // and the watch has not shown it yet
		s.mu.Unlock()
		s.want()
		s.mu.Lock()
		s.store(s.pods["p"].DeepCopy())
		s.mu.Unlock()
		s.want("status p: " + tooLittle)
		s.wait(time.Minute)
		s.want()
	})
}

// When the lead is lost no further binding starts.
func TestLostLead(t *testing.T) {
	play(t, func(s *stage) {
		s.node("n", "4")
		if err := s.loop.ask(context.Background(), func() {
			s.loop.cycle.Lead(corev1.DefaultSchedulerName, false,
				time.Now())
		}); err != nil {
			t.Fatal(err)
		}
		s.pod("p", "1")
		s.wait(time.Hour)
		s.want()
	})
}

func TestManyPods(t *testing.T) {
	play(t, func(s *stage) {
		const pods = 500
		for i := range 10 {
			s.node(fmt.Sprintf("n%d", i), "100")
		}
		for i := range pods {
			s.pod(fmt.Sprintf("p%d", i), "1")
		}
		synctest.Wait()
		if len(s.wrote) != pods {
			t.Errorf("%d bindings, want %d", len(s.wrote), pods)
		}
		s.wrote = nil
	})
}

func TestObserve(t *testing.T) {
	play(t, func(s *stage) {
		s.node("n", "4")
		s.pod("p", "5")
		s.want("status p: " + tooLittle)
		explanation, ok := s.loop.explain(context.Background(), "ns", "p")
		if !ok || explanation.Summary != "fits on no node: "+tooLittle {
			t.Errorf("explains %+v, %v", explanation, ok)
		}
		if _, ok := s.loop.explain(context.Background(), "ns", "other"); ok {
			t.Error("explains a Pod that is not there")
		}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() {
			s.loop.observe(ctx, introspect.NewState("scheduler", "test"))
			close(done)
		}()
		synctest.Wait()
		var metric dto.Metric
		if err := s.loop.metrics.waiting.WithLabelValues("unschedulable").Write(&metric); err != nil ||
			metric.GetGauge().GetValue() != 1 {
			t.Errorf("unschedulable is %v, %v", metric.GetGauge(), err)
		}
		cancel()
		<-done
	})
}
