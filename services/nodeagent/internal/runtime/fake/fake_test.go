package fake_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"keelson.dev/services/nodeagent/internal/runtime/conformance"
	"keelson.dev/services/nodeagent/internal/runtime/fake"
)

// byCommand makes a fake's processes do what the suite's commands require.
type byCommand struct{ *fake.Runtime }

func (r byCommand) CreateContainer(ctx context.Context, sandboxID string, config *cri.ContainerConfig,
	sandbox *cri.PodSandboxConfig) (string, error) {
	b := fake.Behavior{}
	if config.Command[0] == "end" {
		b = fake.Behavior{RunFor: time.Millisecond, ExitCode: 3}
	}
	r.SetBehavior("test:1", b)
	return r.Runtime.CreateContainer(ctx, sandboxID, config, sandbox)
}

func TestConformance(t *testing.T) {
	conformance.Run(t, byCommand{fake.New("test:1")}, conformance.Options{
		Image: "test:1", Sleep: []string{"sleep"}, End: []string{"end"}, LogDir: t.TempDir(), UIDs: "fake",
	})
}

func TestKillsAfterTheTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := fake.New("stubborn:1")
		r.SetBehavior("stubborn:1", fake.Behavior{IgnoreTERM: true})
		id := start(t, r)
		began := time.Now()
		if err := r.StopContainer(t.Context(), id, 7*time.Second); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took != 7*time.Second {
			t.Errorf("killed after %v, want 7 s", took)
		}
	})
}

func TestFailAndDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := fake.New("stubborn:1")
		broken := errors.New("broken")
		r.Fail("RunSandbox", broken)
		r.SetDelay("RunSandbox", time.Second)
		began := time.Now()
		_, err := r.RunSandbox(t.Context(), &cri.PodSandboxConfig{Metadata: &cri.PodSandboxMetadata{Uid: "u"}}, "")
		if !errors.Is(err, broken) || time.Since(began) != time.Second {
			t.Errorf("error %v after %v, want the set one after 1 s", err, time.Since(began))
		}
		if start(t, r) == "" {
			t.Error("the next call fails too")
		}
	})
}

func start(t *testing.T, r *fake.Runtime) string {
	t.Helper()
	sandbox, err := r.RunSandbox(t.Context(), &cri.PodSandboxConfig{Metadata: &cri.PodSandboxMetadata{Uid: "u",
		Name: "p"}}, "")
	if err != nil {
		t.Fatal(err)
	}
	id, err := r.CreateContainer(t.Context(), sandbox, &cri.ContainerConfig{Metadata: &cri.ContainerMetadata{Name: "c"},
		Image: &cri.ImageSpec{Image: "stubborn:1"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.StartContainer(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	return id
}
