package csinode

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"keelson.dev/services/nodeagent/internal/csiplugin"
)

// The API learns of drivers that are added, changed and removed, even after failures; drivers from before a restart
// stay until they have had two minutes to come back.
func TestTeller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old := listed("gone", "slow")
		client := fake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "u"}}, old)
		var mu sync.Mutex // guards the variables below
		broken, drivers := true, []csiplugin.Identity{driver("a", "1", "r1", 0)}
		client.PrependReactor("update", "csinodes", func(clienttesting.Action) (bool, runtime.Object, error) {
			mu.Lock()
			defer mu.Unlock()
			if broken {
				return true, nil, errors.New("connection refused")
			}
			return false, nil, nil
		})
		teller := New(Config{Client: client, Log: zap.NewNop(), Name: "n", Drivers: func() []csiplugin.Identity {
			mu.Lock()
			defer mu.Unlock()
			return drivers
		}})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			teller.Run(ctx)
		}()
		pass := func(d time.Duration) {
			<-time.After(d)
			synctest.Wait()
		}
		want := func(text string) {
			t.Helper()
			n, err := client.StorageV1().CSINodes().Get(ctx, "n", metav1.GetOptions{})
			if got := strings.Join(names(n), " "); err != nil || got != text {
				t.Errorf("the API has %q, %v, want %q", got, err, text)
			}
		}
		set := func(now ...csiplugin.Identity) {
			mu.Lock()
			broken, drivers = false, now
			mu.Unlock()
			teller.Look()
		}
		pass(10 * time.Second)
		want("gone slow")
		set(driver("a", "1", "r1", 0))
		pass(5 * time.Second)
		want("gone slow a")
		node, err := client.CoreV1().Nodes().Get(ctx, "n", metav1.GetOptions{})
		if err != nil || node.Labels["example.com/rack"] != "r1" ||
			node.Annotations["csi.volume.kubernetes.io/nodeid"] != `{"a":"1","gone":"1","slow":"1"}` {
			t.Errorf("the node: %v %v %v", node.Labels, node.Annotations, err)
		}
		set(driver("a", "2", "r1", 0), driver("slow", "1", "", 0))
		pass(5 * time.Second)
		n, _ := client.StorageV1().CSINodes().Get(ctx, "n", metav1.GetOptions{})
		if last := n.Spec.Drivers[len(n.Spec.Drivers)-1]; last.Name != "a" || last.NodeID != "2" {
			t.Errorf("a driver with another ID: %+v", n.Spec.Drivers)
		}
		set(driver("slow", "1", "", 0))
		pass(5 * time.Second)
		want("gone slow")
		pass(2 * time.Minute)
		want("slow")
		cancel()
		<-done
	})
}
