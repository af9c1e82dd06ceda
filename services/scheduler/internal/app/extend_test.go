package app

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	"keelson.dev/kit/daemon"
	"keelson.dev/services/scheduler/internal/ask"
	"keelson.dev/services/scheduler/internal/bind"
	"keelson.dev/services/scheduler/internal/config"
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
			s.loop.asker = ask.New(settings.Extenders, []*http.Client{{Transport: extender}}, client.CoreV1(), nil,
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
