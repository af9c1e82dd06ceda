package app

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"keelson.dev/kit/daemon"
	"keelson.dev/services/scheduler/internal/bind"
	"keelson.dev/services/scheduler/internal/config"
	"keelson.dev/services/scheduler/internal/cycle"
	"keelson.dev/services/scheduler/internal/extender"
	"keelson.dev/services/scheduler/internal/extenderclient"
	"keelson.dev/services/scheduler/internal/feed"
)

// roundTrip is a connection to an extender.
type roundTrip func(*http.Request) (string, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := f(r)
	if err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

const withExtender = `{apiVersion: kubescheduler.config.k8s.io/v1, kind: KubeSchedulerConfiguration,
extenders: [{urlPrefix: "http://extender", filterVerb: filter, bindVerb: bind, nodeCacheCapable: true, httpTimeout: 3s,
managedResources: [{name: example.com/gpu, ignoredByScheduler: true}]}]}`

// playExtended is play with an extender for Pods that ask for a gpu.
func playExtended(t *testing.T, extender roundTrip, test func(*stage)) {
	settings, err := config.Parse([]byte(withExtender))
	if err != nil {
		t.Fatal(err)
	}
	playWith(t, Config{Environment: daemon.NewEnvironment(name), Scheduler: settings, Seed: 1},
		func(s *stage, client *fake.Clientset) {
			s.loop.asker = extenderclient.New(settings.Extenders, []*http.Client{{Transport: extender}},
				client.CoreV1(), nil,
				&bind.Terms{}, s.loop.log)
			s.loop.binder.Delegate = s.loop.asker
		}, test)
}

// managed stores a Pod for which the extender is asked.
func (s *stage) managed(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.store(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name)},
		Spec: corev1.PodSpec{SchedulerName: corev1.DefaultSchedulerName,
			Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"),
					"example.com/gpu": resource.MustParse("1")}}}}},
	})
}

// bindTo is what an extender does that binds.
func (s *stage) bindTo(name, node string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.pods[name].DeepCopy()
	p.Spec.NodeName = node
	s.wrote = append(s.wrote, "extender binds "+name+" to "+node)
	s.store(p)
}

// An extender that hangs costs its Pods their time-out and a delay, and no other Pod anything.
func TestExtenderThatHangs(t *testing.T) {
	playExtended(t, func(r *http.Request) (string, error) {
		<-r.Context().Done()
		return "", r.Context().Err()
	}, func(s *stage) {
		s.node("n", "4")
		s.managed("a")
		s.managed("b")
		s.pod("plain", "1")
		s.want("bind plain to n")
		s.wait(2999 * time.Millisecond)
		s.pod("later", "1")
		s.want("bind later to n")
		s.wait(time.Millisecond)
		const why = "extender http://extender failed to filter: no answer within 3s: context deadline exceeded"
		s.want("status a: " + why)
		s.wantEvents("Normal Scheduled plain: Successfully assigned ns/plain to n",
			"Normal Scheduled later: Successfully assigned ns/later to n", "Warning FailedScheduling a: "+why)
		s.wait(3 * time.Second)
		s.want("status b: " + why)
	})
}

// The extender that binds is asked to, and what it says is checked.
func TestExtenderThatBinds(t *testing.T) {
	for name, test := range map[string]struct {
		binds  bool // the extender binds
		answer string
		err    error
		wrote  []string
	}{
		"well":              {true, `{}`, nil, []string{"extender binds p to n"}},
		"its answer lost":   {true, "", io.ErrUnexpectedEOF, []string{"extender binds p to n"}},
		"not":               {false, `{"Error": "no room"}`, nil, nil},
		"not as it says":    {false, `{}`, nil, nil},
		"lost, and did not": {false, "", io.ErrUnexpectedEOF, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var s *stage
			calls := 0
			playExtended(t, func(r *http.Request) (string, error) {
				if r.URL.Path == "/filter" {
					return `{"NodeNames": ["n"]}`, nil
				}
				if calls++; test.binds {
					s.bindTo("p", "n")
				}
				return test.answer, test.err
			}, func(at *stage) {
				s = at
				s.node("n", "1")
				s.managed("p")
				s.wait(500 * time.Millisecond)
				s.want(test.wrote...)
				if calls != 1 {
					t.Fatalf("asked to bind %d times, want once", calls)
				}
				synctest.Wait()
				if test.binds {
					s.wait(time.Hour)
					s.want()
					if calls != 1 {
						t.Errorf("asked to bind %d times, want once", calls)
					}
					return
				}
				s.pod("q", "1") // the room is free until p is tried again
				s.want("bind q to n")
			})
		})
	}
}

// groupOfThree is the PodGroup of the Pods a, b and c.
func groupOfThree() *schedulingv1beta1.PodGroup {
	g := &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "g", UID: "g"}}
	g.Spec.SchedulingPolicy.Gang = &schedulingv1beta1.GangSchedulingPolicy{MinCount: 3}
	return g
}

// memberOf returns a Pod of the group for which the extender is asked.
func memberOf(group, name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name)},
		Spec: corev1.PodSpec{SchedulerName: corev1.DefaultSchedulerName,
			SchedulingGroup: &corev1.PodSchedulingGroup{PodGroupName: &group},
			Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{"example.com/gpu": resource.MustParse("1")}}}}},
	}
}

// bindings returns the names of the Pods that were bound since the last call.
func (s *stage) bindings() (names []string) {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, line := range s.wrote {
		if name, ok := strings.CutPrefix(line, "bind "); ok {
			names = append(names, strings.TrimSuffix(name, " to n"))
		}
	}
	s.wrote = nil
	slices.Sort(names)
	return names
}

// An extender that hangs over a Pod of a gang costs this gang one time-out, however many Pods it has, and no other Pod
// anything. When it answers again, the gang is placed whole.
func TestExtenderThatHangsOverAGang(t *testing.T) {
	var hangs atomic.Bool
	var asked atomic.Int32 // to filter
	hangs.Store(true)
	playExtended(t, func(r *http.Request) (string, error) {
		if r.URL.Path == "/filter" {
			asked.Add(1)
		}
		if hangs.Load() {
			<-r.Context().Done()
			return "", r.Context().Err()
		}
		return `{"NodeNames": ["n"]}`, nil
	}, func(s *stage) {
		s.loop.groups = bind.NewGroupStatuses(fake.NewClientset().SchedulingV1beta1(), &bind.Terms{},
			s.loop.groupUnwritten)
		s.node("n", "4")
		s.tell(feed.Set(groupOfThree()))
		s.mu.Lock()
		for _, name := range []string{"a", "b", "c"} {
			s.store(memberOf("g", name))
		}
		s.mu.Unlock()
		s.pod("plain", "1")
		if got := s.bindings(); !slices.Equal(got, []string{"plain"}) {
			t.Errorf("bound are %v", got)
		}
		s.wait(3 * time.Second)
		const why = "extender http://extender failed to filter: no answer within 3s: context deadline exceeded"
		if got := s.bindings(); len(got) > 0 {
			t.Errorf("bound are %v", got)
		}
		for _, name := range []string{"a", "b", "c"} {
			if got := s.condition(name, corev1.PodScheduled).Message; got != why {
				t.Errorf("%s says %q", name, got)
			}
		}
		hangs.Store(false)
		s.wait(time.Second)
		synctest.Wait()
		if asked.Load() != 4 {
			t.Errorf("asked %d times, want once in vain and once for each Pod", asked.Load())
		}
	})
}

// Over HTTP an extender is asked about each Pod of a gang, by name, and all of it goes where it lets it.
func TestGangOverHTTP(t *testing.T) {
	for name, test := range map[string]struct{ refused, want string }{
		"let pass":    {"", "a:n b:m c:m"},
		"one refused": {"c", "a: b: c:"},
	} {
		t.Run(name, func(t *testing.T) {
			var asked []string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var args extenderv1.ExtenderArgs
				if err := json.NewDecoder(r.Body).Decode(&args); err != nil {
					t.Error(err)
				}
				asked = append(asked, args.Pod.Name)
				switch args.Pod.Name {
				case test.refused:
					fmt.Fprint(w, `{"NodeNames": [], "FailedNodes": {"n": "no gpu", "m": "no gpu"}}`)
				case "a":
					fmt.Fprint(w, `{"NodeNames": ["n"]}`)
				default:
					fmt.Fprint(w, `{"NodeNames": ["m"]}`)
				}
			}))
			defer server.Close()
			settings, err := config.Parse([]byte(strings.ReplaceAll(withExtender, "http://extender", server.URL)))
			if err != nil {
				t.Fatal(err)
			}
			c := cycle.New(cycle.Config{Profiles: settings.Profiles, Backoff: settings.Backoff,
				Extenders: settings.Extenders})
			c.Lead(corev1.DefaultSchedulerName, true, time.Time{})
			client := fake.NewClientset()
			for _, name := range []string{"n", "m"} {
				c.SetNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{
					Allocatable: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("9")}}})
			}
			c.SetPodGroup(groupOfThree(), time.Time{})
			for _, name := range []string{"a", "b", "c"} {
				p := memberOf("g", name)
				if err := client.Tracker().Add(p); err != nil {
					t.Fatal(err)
				}
				c.SetPod(p, time.Time{})
			}
			asker := extenderclient.New(settings.Extenders, []*http.Client{server.Client()}, client.CoreV1(), nil,
				&bind.Terms{},
				zap.NewNop())
			var got []string
			for v, ok := c.Next(time.Time{}); ok; v, ok = c.Next(time.Time{}) {
				if v.Question == nil {
					got = append(got, v.Pod.Name+":"+v.Node)
					continue
				}
				answers := make(chan extender.Answer)
				asker.Ask(t.Context(), v.Question, func(a extender.Answer) { answers <- a })
				c.Answered(v.Question, <-answers, time.Time{})
			}
			if got := strings.Join(got, " "); got != test.want || strings.Join(asked, " ") != "a b c" {
				t.Errorf("placed %q, want %q; asked about %v", got, test.want, asked)
			}
		})
	}
}
