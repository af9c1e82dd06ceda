// Package conformance checks that a container runtime keeps the contract of package runtime. Every implementation runs
// it: the fake in its unit tests, CRI in the test module, which has a real runtime.
package conformance

import (
	"context"
	"fmt"
	"testing"
	"time"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"keelson.dev/services/nodeagent/internal/observed"
	"keelson.dev/services/nodeagent/internal/runtime"
)

// Options are the settings of the suite.
type Options struct {
	// Image is on the node and runs Sleep until it is stopped; End makes it exit at once with code 3.
	Image      string
	Sleep, End []string
	// LogDir is an existing folder for container logs.
	LogDir string
	// CgroupParent of the sandboxes, if the runtime needs one.
	CgroupParent string
	// UIDs returns Pod UIDs that nothing else uses.
	UIDs string
	// Orphan starts a created container without the runtime's own calls; nil if that cannot be done.
	Orphan func(ctx context.Context, containerID string) error
	// Lose makes the runtime lose its record of a running container, and returns a function that restores the record;
	// nil if that cannot be done.
	Lose func(ctx context.Context, containerID string) (back func(context.Context) error, err error)
	// GiveUp runs a sandbox whose container and process the runtime keeps but does not list. It returns a function
	// that names what is left of it, empty for nothing; nil if that cannot be done.
	GiveUp func(ctx context.Context) (remains func() (string, error), err error)
	// Remains returns what is left of a removed container, empty for nothing; nil if that cannot be determined.
	Remains func(containerID string) (string, error)
}

// Run runs the suite.
func Run(t *testing.T, r runtime.Runtime, o Options) {
	for name, check := range map[string]func(*testing.T, *suite){
		"a Pod's life":              life,
		"stop and remove again":     idempotent,
		"exit code":                 exits,
		"unknown Pod is empty":      unknown,
		"images":                    images,
		"what containers write":     layers,
		"events lead to the state":  events,
		"exec in what does not run": execGone,
		"limits of what runs":       limits,
		"interrupted starts":        interruptedStarts,
		"interrupted sandboxes":     interruptedSandboxes,
		"a start that failed late":  orphan,
		"containers that were lost": orphans,
		"a sandbox given up":        givenUp,
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			s := &suite{Options: o, ctx: ctx, r: r, uid: o.UIDs + "-" + fmt.Sprint(time.Now().UnixNano())}
			t.Cleanup(func() { s.cleanUp(t) })
			check(t, s)
		})
	}
}

type suite struct {
	Options
	ctx     context.Context
	r       runtime.Runtime
	uid     string
	sandbox string
}

func (s *suite) config() *cri.PodSandboxConfig {
	return &cri.PodSandboxConfig{
		Metadata:     &cri.PodSandboxMetadata{Name: "conformance", Namespace: "default", Uid: s.uid},
		LogDirectory: s.LogDir,
		Labels: map[string]string{runtime.LabelPodName: "conformance", runtime.LabelPodNamespace: "default",
			runtime.LabelPodUID: s.uid},
		Linux: &cri.LinuxPodSandboxConfig{CgroupParent: s.CgroupParent},
	}
}

func (s *suite) runSandbox(t *testing.T) {
	t.Helper()
	id, err := s.r.RunSandbox(s.ctx, s.config(), "")
	if err != nil {
		t.Fatalf("running a sandbox: %v", err)
	}
	s.sandbox = id
}

func (s *suite) create(t *testing.T, name string, command []string) string {
	t.Helper()
	image, ok, err := s.r.ImageStatus(s.ctx, s.Image)
	if err != nil || !ok {
		t.Fatalf("image %s: present %v, error %v", s.Image, ok, err)
	}
	id, err := s.r.CreateContainer(s.ctx, s.sandbox, &cri.ContainerConfig{
		Metadata: &cri.ContainerMetadata{Name: name},
		Image:    &cri.ImageSpec{Image: image.ID, UserSpecifiedImage: s.Image},
		Command:  command,
		Labels: map[string]string{runtime.LabelContainerName: name, runtime.LabelPodUID: s.uid,
			runtime.LabelPodName: "conformance", runtime.LabelPodNamespace: "default"},
		Annotations: map[string]string{runtime.AnnotationImage: s.Image},
		LogPath:     name + ".log",
		Linux:       &cri.LinuxContainerConfig{},
	}, s.config())
	if err != nil {
		t.Fatalf("creating a container: %v", err)
	}
	return id
}

func (s *suite) start(t *testing.T, id string) {
	t.Helper()
	if err := s.r.StartContainer(s.ctx, id); err != nil {
		t.Fatalf("starting a container: %v", err)
	}
}

func (s *suite) state(t *testing.T) observed.Pod {
	t.Helper()
	pod, err := s.r.PodState(s.ctx, s.uid)
	if err != nil {
		t.Fatalf("reading the state: %v", err)
	}
	return pod
}

// await waits until the container is in the state.
func (s *suite) await(t *testing.T, id string, want observed.ContainerState) observed.Container {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		pod := s.state(t)
		if c := pod.ByID(id); c != nil && c.State == want {
			return *c
		}
		select {
		case <-tick.C:
		case <-s.ctx.Done():
			t.Fatalf("container %s did not become %s: %+v", id, want, pod)
		}
	}
}

func (s *suite) cleanUp(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if s.sandbox == "" {
		return
	}
	if err := s.r.StopSandbox(ctx, s.sandbox); err != nil {
		t.Errorf("stopping the sandbox: %v", err)
	}
	if err := s.r.RemoveSandbox(ctx, s.sandbox); err != nil {
		t.Errorf("removing the sandbox: %v", err)
	}
	pod, err := s.r.PodState(ctx, s.uid)
	if err != nil || !pod.Empty() {
		t.Errorf("after removal the runtime still has %+v (error %v)", pod, err)
	}
}
