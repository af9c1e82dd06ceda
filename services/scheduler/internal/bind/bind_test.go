package bind

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"keelson.dev/kit/failpoint"
)

func pod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name),
		ResourceVersion: "7"}}
}

// server answers as scripted: the Pod as a look would see it, and the errors of the writes in order.
type server struct {
	*fake.Clientset
	mu    sync.Mutex
	seen  *corev1.Pod
	looks []error
	binds []error
	bound []*corev1.Binding
}

func newServer() *server {
	s := &server{Clientset: fake.NewClientset()}
	s.PrependReactor("create", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.bound = append(s.bound, a.(clienttesting.CreateAction).GetObject().(*corev1.Binding))
		return true, nil, next(&s.binds)
	})
	s.PrependReactor("get", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		return true, s.seen, next(&s.looks)
	})
	return s
}

func next(errs *[]error) error {
	if len(*errs) == 0 {
		return nil
	}
	err := (*errs)[0]
	*errs = (*errs)[1:]
	return err
}

// bindOnce binds one Pod to node n and returns the outcome.
func (s *server) bindOnce() Outcome {
	outcomes := make(chan Outcome, 1)
	b := NewBinder(s.CoreV1(), nil, &Terms{}, func(o Outcome) { outcomes <- o })
	b.Bind(context.Background(), Binding{Pod: pod("p"), Node: "n"})
	b.Wait()
	return <-outcomes
}

func TestBindingNamesPodAndNode(t *testing.T) {
	s := newServer()
	if o := s.bindOnce(); o.Err != nil || o.Node != "n" || o.Pod.Name != "p" {
		t.Fatalf("outcome is %+v", o)
	}
	if len(s.bound) != 1 || s.bound[0].UID != "uid-p" || s.bound[0].Name != "p" || s.bound[0].Target.Kind != "Node" ||
		s.bound[0].Target.Name != "n" {
		t.Errorf("bound %+v", s.bound)
	}
}

// POD-026, SAF-121: a binding is written once; where the answer is lost, the Pod itself says what became of it.
func TestLostAnswers(t *testing.T) {
	resource := corev1.Resource("pods")
	bound := func(node string, uid types.UID) *corev1.Pod {
		p := pod("p")
		p.Spec.NodeName, p.UID = node, uid
		return p
	}
	lost := errors.New("connection reset")
	for name, test := range map[string]struct {
		answer error
		looks  []error
		seen   *corev1.Pod
		ok     bool
	}{
		"refused: bound by another": {apierrors.NewConflict(resource, "p", errors.New("already assigned")), nil,
			bound("m", "uid-p"), false},
		"refused: gone":                    {apierrors.NewNotFound(resource, "p"), nil, nil, false},
		"lost, and was taken":              {lost, nil, bound("n", "uid-p"), true},
		"lost, and was not taken":          {lost, nil, pod("p"), false},
		"lost, and bound elsewhere":        {lost, nil, bound("m", "uid-p"), false},
		"lost, and another of its name":    {lost, nil, bound("n", "uid-other"), false},
		"lost, and gone":                   {lost, []error{apierrors.NewNotFound(resource, "p")}, nil, false},
		"lost, and seen at the third look": {lost, []error{lost, lost}, bound("n", "uid-p"), true},
		"server error, and was taken":      {apierrors.NewInternalError(lost), nil, bound("n", "uid-p"), true},
		"server timeout, not taken":        {apierrors.NewTimeoutError("slow", 1), nil, pod("p"), false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer()
				s.binds, s.looks, s.seen = []error{test.answer}, test.looks, test.seen
				o := s.bindOnce()
				if ok := o.Err == nil; ok != test.ok {
					t.Errorf("outcome is %v", o.Err)
				}
				if len(s.bound) != 1 {
					t.Errorf("the binding was written %d times", len(s.bound))
				}
			})
		})
	}
}

// While the API server does not answer, the binding stays open for a while and then fails, so that the Pod is tried
// again.
func TestNobodyAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		lost := errors.New("connection refused")
		s.binds = []error{lost}
		for range 100 {
			s.looks = append(s.looks, lost)
		}
		if o := s.bindOnce(); !errors.Is(o.Err, lost) {
			t.Errorf("outcome is %v", o.Err)
		}
	})
}

func TestFailpoints(t *testing.T) {
	for name, test := range map[string]struct {
		written int
		ok      bool
	}{
		"scheduler/bind.before": {0, false},
		"scheduler/bind.after":  {1, true},
	} {
		t.Run(name, func(t *testing.T) {
			if err := failpoint.Arm(name, "1*error(x)"); err != nil {
				t.Fatal(err)
			}
			defer failpoint.Disarm(name)
			s := newServer()
			s.seen = pod("p")
			if test.written > 0 {
				s.seen.Spec.NodeName = "n"
			}
			if o := s.bindOnce(); (o.Err == nil) != test.ok || len(s.bound) != test.written {
				t.Errorf("outcome is %v after %d writes", o.Err, len(s.bound))
			}
		})
	}
}

// Many bindings are under way at a time, and no more than 64.
func TestBindingsArePipelined(t *testing.T) {
	const inFlight = 64
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		release := make(chan struct{})
		under, most := 0, 0
		gate := &gated{PodsGetter: s.CoreV1(), enter: func() {
			s.mu.Lock()
			under++
			most = max(most, under)
			s.mu.Unlock()
			<-release
			s.mu.Lock()
			under--
			s.mu.Unlock()
		}}
		done := make(chan Outcome, 2*inFlight)
		b := NewBinder(gate, nil, &Terms{}, func(o Outcome) { done <- o })
		go func() {
			for i := range 2 * inFlight {
				b.Bind(t.Context(), Binding{Pod: pod(fmt.Sprint(i)), Node: "n"})
			}
		}()
		synctest.Wait()
		if under != inFlight {
			t.Errorf("%d bindings are under way, want %d", under, inFlight)
		}
		close(release)
		for range 2 * inFlight {
			<-done
		}
		if most != inFlight {
			t.Errorf("up to %d bindings were under way, want %d", most, inFlight)
		}
	})
}
