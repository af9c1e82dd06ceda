package bootstrap

import (
	"context"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// The Endpoints lead to an apiserver that has died for as long as its Lease holds, 15 s, and until another one looks,
// which it does every 5 s.
func TestADeadMemberLeavesTheEndpoints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		client.PrependReactor("create", "leases", func(action clienttesting.Action) (bool, runtime.Object, error) {
			lease := action.(clienttesting.CreateAction).GetObject().(*coordinationv1.Lease)
			lease.UID = types.UID(lease.Name) // as a server does
			return false, nil, nil
		})
		var running sync.WaitGroup
		run := func(address string) (stop context.CancelFunc) {
			b := New(Config{Client: client, Address: netip.MustParseAddrPort(address), Log: zap.NewNop()})
			ctx, stop := context.WithCancel(t.Context())
			running.Go(func() { b.RunMember(ctx) })
			return stop
		}
		addresses := func() int {
			e, err := client.CoreV1().Endpoints(metav1.NamespaceDefault).Get(t.Context(), serviceName,
				metav1.GetOptions{})
			if err != nil || len(e.Subsets) != 1 {
				t.Fatalf("the Endpoints are %+v, %v", e, err)
			}
			return len(e.Subsets[0].Addresses)
		}
		kill := run("10.0.0.1:6443")
		time.Sleep(2 * time.Second)
		stop := run("10.0.0.2:6443")
		time.Sleep(30 * time.Second)
		if n := addresses(); n != 2 {
			t.Errorf("%d apiservers are known of two", n)
		}
		kill()
		died := time.Now()
		for addresses() == 2 && time.Since(died) < time.Minute {
			time.Sleep(time.Second)
		}
		if took := time.Since(died); took < 10*time.Second || took > 20*time.Second {
			t.Errorf("the dead one has left after %v, want 20 s at most, and not before its Lease has ended", took)
		}
		stop()
		running.Wait()
	})
}
