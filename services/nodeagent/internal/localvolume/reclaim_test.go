package localvolume

import (
	"context"
	"errors"
	"os"
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

	"keelson.dev/services/nodeagent/internal/podfiles"
	"keelson.dev/services/nodeagent/internal/volume/mountfake"
)

// The folder is removed before the object, not while a Pod of the node uses it, and failures are retried.
func TestReclaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(released(),
			released(func(v *corev1.PersistentVolume) { retain(v); v.Name = "kept" }))
		var mu sync.Mutex // guards patches and broken
		var patches []string
		broken := true
		client.PrependReactor("patch", "persistentvolumes", func(a clienttesting.Action) (bool, runtime.Object, error) {
			mu.Lock()
			defer mu.Unlock()
			if broken {
				return true, nil, errors.New("connection refused")
			}
			patch := a.(clienttesting.PatchAction)
			patches = append(patches, patch.GetName()+" "+string(patch.GetPatch()))
			return false, nil, nil
		})
		store := NewStore(podfiles.Root{Dir: t.TempDir(), LogDir: t.TempDir()}, &mountfake.Mounter{})
		path := begin(t, store, "u-1")
		r := NewReclaimer(ReclaimerConfig{Client: client, Log: zap.NewNop(), Store: store, Node: "n"})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		mu.Lock()
		go func() {
			defer close(done)
			r.Run(ctx)
		}()
		settle := func() {
			mu.Unlock()
			defer mu.Lock()
			synctest.Wait()
			time.Sleep(time.Hour)
			synctest.Wait()
		}
		settle()
		if _, err := os.Stat(path); err != nil || len(patches) != 0 {
			t.Errorf("while a pod uses it: %v, %v", err, patches)
		}
		broken = false
		settle()
		if len(patches) != 1 || !strings.HasPrefix(patches[0], "kept ") {
			t.Errorf("while a pod uses it: %v", patches)
		}
		must(t, store.files.Remove("u-1"))
		r.Look()
		settle()
		if _, err := os.Stat(path); !os.IsNotExist(err) || len(patches) != 2 || patches[1] != handle+
			` {"metadata":{"finalizers":["example.com/other"],"resourceVersion":"","uid":"v"}}` {
			t.Errorf("afterwards: %v, %v", err, patches)
		}
		got, err := client.CoreV1().PersistentVolumes().Get(ctx, handle, metav1.GetOptions{})
		if err != nil || len(got.Finalizers) != 1 {
			t.Errorf("the object: %v, %v", got.Finalizers, err)
		}
		cancel()
		<-done
	})
}
