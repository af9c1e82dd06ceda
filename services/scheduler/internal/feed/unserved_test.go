package feed

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// apiserver serves one claim of devices, or fails.
type apiserver struct {
	failure atomic.Pointer[apierrors.StatusError]
	watches atomic.Pointer[watch.RaceFreeFakeWatcher]
}

func (s *apiserver) fail(err *apierrors.StatusError) {
	s.failure.Store(err)
	if w := s.watches.Swap(nil); w != nil {
		w.Error(&apierrors.NewResourceExpired("it begins anew").ErrStatus)
	}
}

func (s *apiserver) source() *cache.ListWatch {
	return &cache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			if err := s.failure.Load(); err != nil {
				return nil, err
			}
			return &resourcev1.ResourceClaimList{ListMeta: metav1.ListMeta{ResourceVersion: "7"},
				Items: []resourcev1.ResourceClaim{{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}}}}, nil
		},
		WatchFuncWithContext: func(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
			if err := s.failure.Load(); err != nil {
				return nil, err
			}
			if o.SendInitialEvents != nil {
				return nil, apierrors.NewInvalid(schema.GroupKind{}, "", nil) // it knows lists only
			}
			w := watch.NewRaceFreeFake()
			s.watches.Store(w)
			return w, nil
		},
	}
}

// A kind that is not served has no objects, and is found when it is served. One that was served keeps what it had while
// it is not. Whatever else fails is no answer.
func TestAKindThatIsNotServed(t *testing.T) {
	gone := apierrors.NewGenericServerResponse(404, "GET", schema.GroupResource{Resource: "resourceclaims"}, "", "", 0,
		true)
	for _, failure := range []struct {
		err    *apierrors.StatusError
		synced bool
	}{
		{gone, true},
		{apierrors.NewForbidden(schema.GroupResource{Resource: "resourceclaims"}, "", nil), false},
		{apierrors.NewServiceUnavailable("it starts"), false},
	} {
		synctest.Test(t, func(t *testing.T) {
			server := &apiserver{}
			server.fail(failure.err)
			informer := cache.NewSharedIndexInformer(optional(server.source()), &resourcev1.ResourceClaim{}, 0, nil)
			// The library's own handler holds back what other tests of the process have told of.
			err := informer.SetWatchErrorHandlerWithContext(func(context.Context, *cache.Reflector, error) {})
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() { defer close(ended); informer.RunWithContext(ctx) }()
			defer func() { stop(); <-ended }()
			check := func(when string, synced bool, objects int) {
				t.Helper()
				synctest.Wait()
				if informer.HasSynced() != synced || len(informer.GetStore().List()) != objects {
					t.Errorf("%v, %s: synced is %v with %d objects", failure.err, when, informer.HasSynced(),
						len(informer.GetStore().List()))
				}
			}
			check("at first", failure.synced, 0)
			server.fail(nil)
			time.Sleep(4 * unservedPause)
			check("served", true, 1)
			server.fail(failure.err)
			time.Sleep(4 * unservedPause)
			check("not served any more", true, 1)
			server.fail(nil)
			time.Sleep(4 * unservedPause)
			check("served again", true, 1)
		})
	}
}
