package app

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/types"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"keelson.dev/kit/daemon"
	"keelson.dev/services/nodeagent/internal/podworker"
	"keelson.dev/services/nodeagent/internal/runtime/fake"
)

// Pods of the runtime do not count as new because the runtime did not answer: the agent waits for it.
func TestSurveyWaitsForTheRuntime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := fake.New()
		if _, err := r.RunSandbox(t.Context(), &cri.PodSandboxConfig{Metadata: &cri.PodSandboxMetadata{Uid: "u1",
			Name: "web"}}, ""); err != nil {
			t.Fatal(err)
		}
		a := &agent{host: &host{runtime: r}, before: map[types.UID]bool{},
			pool:   podworker.NewPool(t.Context(), podworker.Config{Log: zap.NewNop()}),
			Config: Config{Environment: &daemon.Environment{Log: zap.NewNop()}}}
		r.Fail("ListPods", errors.New("busy"), errors.New("busy"))
		began := time.Now()
		if !a.survey(t.Context()) || !a.before["u1"] || len(a.before) != 1 || time.Since(began) != 2*time.Second {
			t.Errorf("after %v: %v", time.Since(began), a.before)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		r.Fail("ListPods", errors.New("down"), errors.New("down"), errors.New("down"))
		if a.survey(ctx) {
			t.Error("a runtime that does not answer was surveyed")
		}
	})
}
