package controller

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"keelson.dev/kit/daemon"
	"keelson.dev/kit/introspect"
)

// A daemon that starts before the apiserver waits for it and does not end.
func TestAGroupWaitsForTheApiserver(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer server.Close()
	group, err := New(Options{
		Service: "test", Config: &rest.Config{Host: server.URL}, Scheme: scheme.Scheme, Log: zap.NewNop(),
		State: introspect.NewState("test", "v0"),
		// Options by object make the cache ask which resources there are.
		Cache: cache.Options{ByObject: map[client.Object]cache.ByObject{&corev1.Pod{}: {}}},
	})
	if err != nil {
		t.Fatalf("an apiserver that is away ends the daemon: %v", err)
	}
	running := daemon.Go(t.Context(), group.Run)
	for asked.Load() == 0 {
		select {
		case <-running.Done():
			t.Fatalf("stopped by itself: %v", running.Wait())
		default:
		}
	}
	if group.Synced() == nil {
		t.Error("ready without an apiserver")
	}
	if err := running.Stop(); err != nil {
		t.Errorf("stopping while it waits: %v", err)
	}
}

func TestConnectEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		g := &Group{
			options: Options{Scheme: scheme.Scheme, Log: zap.NewNop(), State: introspect.NewState("test", "v0")},
			fenced:  &rest.Config{Host: "https://[broken"},
		}
		if g.connect(ctx) {
			t.Error("connected to nothing")
		}
	})
}
