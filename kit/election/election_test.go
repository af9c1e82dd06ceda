package election

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

type silent struct{}

func (silent) Campaigning(string)     {}
func (silent) Leading(string, string) {}
func (silent) Lost(string)            {}
func (silent) Elected(string, string) {}
func (silent) Failed(string, error)   {}

func elector(client *fake.Clientset, identity string) *Elector {
	return newElector(identity, client, silent{}, sinceTest)
}

// leases is a fake server that refuses a write based on an older version, as the real one does.
func leases() *fake.Clientset {
	client := fake.NewClientset()
	version := 0
	stamp := func(action clienttesting.Action) (bool, runtime.Object, error) {
		write := action.(clienttesting.UpdateAction).GetObject().(*coordinationv1.Lease)
		version++
		old, err := client.Tracker().Get(action.GetResource(), write.Namespace, write.Name)
		if err == nil && old.(*coordinationv1.Lease).ResourceVersion != write.ResourceVersion {
			return true, nil, apierrors.NewConflict(action.GetResource().GroupResource(), write.Name,
				errors.New("changed"))
		}
		write.ResourceVersion = time.Duration(version).String()
		return false, nil, nil
	}
	client.PrependReactor("update", "leases", stamp)
	client.PrependReactor("create", "leases", stamp)
	return client
}

// until is a lead function that counts itself in the given gauge.
func until(active *atomic.Int32, t *testing.T) func(context.Context) error {
	return func(ctx context.Context) error {
		if active.Add(1) > 1 {
			t.Error("two leaders at once")
		}
		<-ctx.Done()
		time.Sleep(time.Second) // Winding up takes a while.
		active.Add(-1)
		return nil
	}
}

func TestStandbyTakesOverAtOnceAfterACleanStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, active := leases(), &atomic.Int32{}
		first, stopFirst := context.WithCancel(t.Context())
		second, stopSecond := context.WithCancel(t.Context())
		ended := make(chan struct{}, 2)
		go func() { _ = elector(client, "a").Run(first, "test.role", until(active, t)); ended <- struct{}{} }()
		time.Sleep(5 * time.Second)
		go func() { _ = elector(client, "b").Run(second, "test.role", until(active, t)); ended <- struct{}{} }()
		time.Sleep(20 * time.Second)
		if active.Load() != 1 {
			t.Fatalf("%d leaders", active.Load())
		}
		stopFirst()
		time.Sleep(10 * time.Second)
		if active.Load() != 1 {
			t.Errorf("%d leaders 10 s after the first gave up", active.Load())
		}
		stopSecond()
		<-ended
		<-ended
	})
}

func TestStandbyTakesOverWithin20SecondsOfALostLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := leases()
		var cut atomic.Bool
		dead := elector(client, "a")
		ctx, kill := context.WithCancel(t.Context())
		defer kill()
		// A killed process renews no more and gives nothing up.
		client.PrependReactor("update", "leases", func(action clienttesting.Action) (bool, runtime.Object, error) {
			lease := action.(clienttesting.UpdateAction).GetObject().(*coordinationv1.Lease)
			if cut.Load() && (lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity != "b") {
				return true, nil, errors.New("connection lost")
			}
			return false, nil, nil
		})
		go func() { _ = dead.Run(ctx, "test.role", func(ctx context.Context) error { <-ctx.Done(); return nil }) }()
		time.Sleep(3 * time.Second)
		won := make(chan time.Time, 1)
		standby, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = elector(client, "b").Run(standby, "test.role",
				func(ctx context.Context) error { won <- time.Now(); <-ctx.Done(); return nil })
		}()
		time.Sleep(30 * time.Second)
		cut.Store(true)
		lost := time.Now()
		if took := (<-won).Sub(lost); took > 20*time.Second {
			t.Errorf("took over after %v", took)
		}
		stop()
		<-ended
	})
}

func TestLosingTheLeaseEndsTheWorkBeforeItExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := leases()
		var cut atomic.Bool
		client.PrependReactor("*", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
			if cut.Load() {
				return true, nil, errors.New("connection lost")
			}
			return false, nil, nil
		})
		ctx, stop := context.WithCancel(t.Context())
		ended, over := make(chan time.Time, 1), make(chan struct{})
		go func() {
			defer close(over)
			_ = elector(client, "a").Run(ctx, "test.role",
				func(ctx context.Context) error { <-ctx.Done(); ended <- time.Now(); return nil })
		}()
		time.Sleep(5 * time.Second)
		cut.Store(true)
		lost := time.Now()
		if took := (<-ended).Sub(lost); took > DefaultTiming.LeaseDuration {
			t.Errorf("the work ended %v after the last renewal, the lease lasts %v", took, DefaultTiming.LeaseDuration)
		}
		stop()
		<-over
	})
}

func TestFailedWorkIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		tries := 0
		_ = elector(leases(), "a").Run(ctx, "test.role", func(context.Context) error {
			if tries++; tries == 3 {
				stop()
			}
			return errors.New("no luck")
		})
		if tries != 3 {
			t.Errorf("%d tries", tries)
		}
	})
}
