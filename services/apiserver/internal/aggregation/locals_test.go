package aggregation

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset/fake"
	apiregistrationclient "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset/typed/apiregistration/v1"
)

// shared are the APIServices of a store that apiservers share.
type shared struct {
	apiregistrationclient.APIServiceInterface
	writes atomic.Int32
}

func newShared() *shared {
	client := fake.NewClientset()
	s := &shared{APIServiceInterface: client.ApiregistrationV1().APIServices()}
	client.PrependReactor("*", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if a.GetVerb() != "list" && a.GetVerb() != "get" {
			s.writes.Add(1)
		}
		if made, is := a.(clienttesting.CreateAction); is && a.GetVerb() == "create" {
			made.GetObject().(*apiregistration.APIService).CreationTimestamp = metav1.Now()
		}
		return false, nil, nil
	})
	return s
}

func (s *shared) stored(t *testing.T) map[string]*apiregistration.APIService {
	t.Helper()
	list, err := s.List(context.Background(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	stored := map[string]*apiregistration.APIService{}
	for i := range list.Items {
		stored[list.Items[i].Name] = &list.Items[i]
	}
	return stored
}

// keep begins an apiserver that serves the groups, and returns how it comes to know what is defined.
func (s *shared) keep(t *testing.T, served ...string) (define func(groups ...string)) {
	t.Helper()
	versions := func(groups []string) map[string][]string {
		all := map[string][]string{}
		for _, group := range groups {
			all[group] = []string{"v1"}
		}
		return all
	}
	var defined atomic.Value
	defined.Store(versions(nil))
	l := NewLocals(Locals{APIServices: s, Served: versions(served), Log: zap.NewNop(),
		Defined: func() map[string][]string { return defined.Load().(map[string][]string) },
		Stored: func() []*apiregistration.APIService {
			var all []*apiregistration.APIService
			for _, one := range s.stored(t) {
				all = append(all, one)
			}
			return all
		}, Read: []cache.InformerSynced{func() bool { return true }}})
	go l.Run(t.Context())
	return func(groups ...string) {
		defined.Store(versions(groups))
		l.Changed()
	}
}

// Two apiservers of which one is of a later version keep what both and what one serves, and what one has heard of later
// than the other, and neither writes what the other has written.
func TestApiserversDoNotFight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShared()
		newer, older := s.keep(t, "apps", "batch"), s.keep(t, "apps")
		expect := func(when string, writes int32, names ...string) {
			t.Helper()
			stored := s.stored(t)
			for _, name := range names {
				if stored[name] == nil {
					t.Errorf("%s: %s is not there", when, name)
				}
			}
			if len(stored) != len(names) || s.writes.Load() > writes {
				t.Errorf("%s: %d are there, want %d; %d writes, want %d at most", when, len(stored), len(names),
					s.writes.Load(), writes)
			}
			s.writes.Store(0)
		}
		// At its start the older one may take what it does not serve away, once.
		time.Sleep(2 * lookInterval)
		expect("the start", 5, "v1.apps", "v1.batch")
		time.Sleep(time.Hour)
		expect("an hour later", 0, "v1.apps", "v1.batch")

		newer("a.io")
		time.Sleep(time.Second)
		older() // which looks, and has not heard
		time.Sleep(settled / 2)
		expect("one has heard", 1, "v1.apps", "v1.batch", "v1.a.io")
		older("a.io")
		time.Sleep(time.Hour)
		expect("both have heard", 0, "v1.apps", "v1.batch", "v1.a.io")
		older()
		time.Sleep(time.Second)
		newer()
		time.Sleep(time.Hour)
		// The one takes it away, and the other takes it for missing if it looks at all of them in that second.
		expect("both have heard of the end", 3, "v1.apps", "v1.batch")
		time.Sleep(time.Hour)
		expect("an hour later", 0, "v1.apps", "v1.batch")
	})
}

// What users do to an APIService that is kept is undone, within a minute or so, and what others make stays.
func TestEditsArePutBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShared()
		s.keep(t, "apps", "batch")
		time.Sleep(lookInterval)
		stored := s.stored(t)
		apps := edited(stored["v1.apps"])
		if _, err := s.Update(t.Context(), apps, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := s.Delete(t.Context(), "v1.batch", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		other := edited(storedLocal("v1.other.io", "", 0))
		if _, err := s.Create(t.Context(), other, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * lookInterval)
		stored = s.stored(t)
		if stored["v1.apps"].Spec.Service != nil || stored["v1.batch"] == nil {
			t.Errorf("there are %v", stored)
		}
		if stored["v1.other.io"] == nil || stored["v1.other.io"].Spec.Service == nil {
			t.Error("what somebody else made is not there")
		}
	})
}
