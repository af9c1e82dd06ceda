package conformance

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"keelson.dev/services/nodeagent/internal/observed"
	"keelson.dev/services/nodeagent/internal/runtime"
)

func life(t *testing.T, s *suite) {
	s.runSandbox(t)
	s.checkSandbox(t)
	id := s.create(t, "main", s.Sleep)
	if c := s.await(t, id, observed.Created); c.Name != "main" || c.SandboxID != s.sandbox || c.Image != s.Image ||
		!c.StartedAt.IsZero() {
		t.Fatalf("created container %+v", c)
	}
	s.start(t, id)
	if c := s.await(t, id, observed.Running); c.StartedAt.IsZero() || c.ImageID == "" ||
		c.Annotations[runtime.AnnotationImage] != s.Image {
		t.Fatalf("running container %+v", c)
	}
	if err := s.r.StopContainer(s.ctx, id, time.Second); err != nil {
		t.Fatalf("stopping: %v", err)
	}
	if c := s.await(t, id, observed.Exited); c.FinishedAt.IsZero() {
		t.Fatalf("stopped container %+v, want a time", c)
	}
	s.checkList(t, id)
	if err := s.r.RemoveContainer(s.ctx, id); err != nil {
		t.Fatalf("removing: %v", err)
	}
	pod := s.state(t)
	if pod.ByID(id) != nil {
		t.Fatal("a removed container is still there")
	}
}

func (s *suite) checkSandbox(t *testing.T) {
	t.Helper()
	pod := s.state(t)
	if sb := pod.Sandbox(); sb == nil || !sb.Ready || sb.PodUID != s.uid || sb.Name != "conformance" ||
		sb.CreatedAt.IsZero() {
		t.Fatalf("sandbox %+v, want a ready one of the Pod", sb)
	}
}

func (s *suite) checkList(t *testing.T, id string) {
	t.Helper()
	if pods, err := s.r.ListPods(s.ctx); err != nil || !lists(pods, s.uid, id) {
		t.Fatalf("listing gives %+v, error %v; want Pod %s with container %s", pods, err, s.uid, id)
	}
}

func lists(pods []observed.Pod, uid, container string) bool {
	for i := range pods {
		if pods[i].UID == uid {
			return pods[i].ByID(container) != nil
		}
	}
	return false
}

func idempotent(t *testing.T, s *suite) {
	s.runSandbox(t)
	id := s.create(t, "main", s.Sleep)
	s.start(t, id)
	for range 2 {
		if err := s.r.StopContainer(s.ctx, id, time.Second); err != nil {
			t.Fatalf("stopping a container: %v", err)
		}
	}
	for range 2 {
		if err := s.r.RemoveContainer(s.ctx, id); err != nil {
			t.Fatalf("removing a container: %v", err)
		}
	}
	if err := s.r.StopContainer(s.ctx, id, time.Second); err != nil {
		t.Fatalf("stopping a container that is gone: %v", err)
	}
	for range 2 {
		if err := s.r.StopSandbox(s.ctx, s.sandbox); err != nil {
			t.Fatalf("stopping a sandbox: %v", err)
		}
	}
	pod := s.state(t)
	if sb := pod.Sandbox(); sb == nil || sb.Ready {
		t.Fatalf("stopped sandbox %+v, want it to be there and not ready", sb)
	}
	for range 2 {
		if err := s.r.RemoveSandbox(s.ctx, s.sandbox); err != nil {
			t.Fatalf("removing a sandbox: %v", err)
		}
	}
}

func exits(t *testing.T, s *suite) {
	s.runSandbox(t)
	id := s.create(t, "main", s.End)
	s.start(t, id)
	if c := s.await(t, id, observed.Exited); c.ExitCode != 3 {
		t.Fatalf("exit code %d, want 3", c.ExitCode)
	}
}

func unknown(t *testing.T, s *suite) {
	if pod := s.state(t); !pod.Empty() || pod.UID != s.uid {
		t.Fatalf("a Pod that never was: %+v", pod)
	}
}

func images(t *testing.T, s *suite) {
	if _, ok, err := s.r.ImageStatus(s.ctx, "example.invalid/no/such:image"); ok || err != nil {
		t.Fatalf("missing image: present %v, error %v; want neither", ok, err)
	}
	image, ok, err := s.r.ImageStatus(s.ctx, s.Image)
	if err != nil || !ok || image.ID == "" {
		t.Fatalf("image %+v, present %v, error %v", image, ok, err)
	}
	all, err := s.r.ListImages(s.ctx)
	if err != nil {
		t.Fatalf("listing images: %v", err)
	}
	for _, i := range all {
		if i.ID == image.ID {
			return
		}
	}
	t.Fatalf("the list of images lacks %s", image.ID)
}

// layers expects an entry for each instance, and none without instances.
func layers(t *testing.T, s *suite) {
	if _, err := s.r.ImageFs(s.ctx); err != nil {
		t.Errorf("asking where images lie: %v", err)
	}
	if got, err := s.r.Layers(s.ctx, s.uid); err != nil || len(got) != 0 {
		t.Errorf("a Pod that never was has written %+v, error %v", got, err)
	}
	s.runSandbox(t)
	s.start(t, s.create(t, "main", s.Sleep))
	got, err := s.r.Layers(s.ctx, s.uid)
	if err != nil || len(got) != 1 || got[0].Container != "main" || got[0].Attempt != 0 || got[0].Bytes < 0 {
		t.Errorf("what a container has written is %+v, error %v", got, err)
	}
}

func events(t *testing.T, s *suite) {
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	seen := make(chan runtime.Event, 1000)
	ended := make(chan error, 1)
	go func() { ended <- s.r.Watch(ctx, func(e runtime.Event) { seen <- e }) }()
	s.runSandbox(t)
	// The stream may begin late, so containers are created until an event about one arrives.
	for i := 0; s.ctx.Err() == nil; i++ {
		s.start(t, s.create(t, fmt.Sprintf("main%d", i), s.Sleep))
		select {
		case e := <-seen:
			if e.PodUID != s.uid {
				continue
			}
			cancel()
			if err := <-ended; err == nil {
				t.Error("Watch ended without saying why")
			}
			return
		case err := <-ended:
			t.Fatalf("the stream ended: %v", err)
		case <-time.After(time.Second):
		}
	}
	t.Fatal("no event about the Pod")
}

func execGone(t *testing.T, s *suite) {
	s.runSandbox(t)
	id := s.create(t, "main", s.End)
	s.start(t, id)
	s.await(t, id, observed.Exited)
	if _, err := s.r.ExecSync(s.ctx, id, []string{"true"}, time.Second); err == nil {
		t.Fatal("a command ran in a container that has exited")
	}
}

// interruptedStarts interrupts starts at any moment, as the death of the agent does, and expects that their
// instances can be removed and that nothing of them is left.
func interruptedStarts(t *testing.T, s *suite) {
	s.runSandbox(t)
	const starts, apart = 8, 8 * time.Millisecond
	for i := range starts {
		id := s.create(t, fmt.Sprintf("main%d", i), s.Sleep)
		ctx, cancel := context.WithTimeout(s.ctx, time.Duration(i+1)*apart)
		started := s.r.StartContainer(ctx, id) // it may succeed, or fail in any way
		cancel()
		if err := s.r.StopContainer(s.ctx, id, 0); err != nil {
			t.Fatalf("stopping after a start that ended so: %v: %v", started, err)
		}
		s.remove(t, id)
	}
}

// interruptedSandboxes interrupts the creation of sandboxes at any moment, as the death of the agent does, and
// expects that those that the runtime lists can be removed. Unlisted ones are orphans.
func interruptedSandboxes(t *testing.T, s *suite) {
	const sandboxes, apart = 12, 20 * time.Millisecond
	for i := range sandboxes {
		config := s.config()
		config.Metadata.Attempt = uint32(i)
		ctx, cancel := context.WithTimeout(s.ctx, time.Duration(i+1)*apart)
		_, _ = s.r.RunSandbox(ctx, config, "") // it may succeed, or fail in any way
		cancel()
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for pod := s.state(t); !pod.Empty(); pod = s.state(t) {
		var problems []error
		for _, sandbox := range pod.Sandboxes {
			problems = append(problems, s.r.StopSandbox(s.ctx, sandbox.ID), s.r.RemoveSandbox(s.ctx, sandbox.ID))
		}
		select {
		case <-tick.C:
		case <-s.ctx.Done():
			t.Fatalf("the runtime still lists %+v: %v", pod, errors.Join(problems...))
		}
	}
	if err := s.r.EndOrphans(s.ctx); err != nil {
		t.Errorf("ending orphans: %v", err)
	}
}

// orphan starts a container that the runtime then records as failed to start.
func orphan(t *testing.T, s *suite) {
	if s.Orphan == nil {
		return
	}
	s.runSandbox(t)
	kept := s.create(t, "kept", s.Sleep)
	for _, id := range []string{s.create(t, "removed", s.Sleep), kept} {
		if err := s.Orphan(s.ctx, id); err != nil {
			t.Fatal(err)
		}
		if err := s.r.StartContainer(s.ctx, id); err == nil {
			t.Fatal("a container was started twice")
		}
		if c := s.await(t, id, observed.Exited); !c.StartedAt.IsZero() {
			t.Fatalf("a container that could not be started: %+v", c)
		}
		if id != kept { // the other one is removed with its sandbox
			s.remove(t, id)
		}
	}
	if err := s.r.StopSandbox(s.ctx, s.sandbox); err != nil {
		t.Fatalf("stopping the sandbox: %v", err)
	}
	if err := s.r.RemoveSandbox(s.ctx, s.sandbox); err != nil {
		t.Fatalf("removing the sandbox: %v", err)
	}
	s.expectGone(t, kept)
}

// remove removes an instance whose start the runtime may still be abandoning, and checks what is left of it.
func (s *suite) remove(t *testing.T, id string) {
	t.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		err := s.r.RemoveContainer(s.ctx, id)
		if err == nil {
			s.expectGone(t, id)
			return
		}
		select {
		case <-tick.C:
		case <-s.ctx.Done():
			t.Fatalf("removing: %v", err)
		}
	}
}

func (s *suite) expectGone(t *testing.T, id string) {
	t.Helper()
	if s.Remains == nil {
		return
	}
	if left, err := s.Remains(id); err != nil || left != "" {
		t.Errorf("of container %s is left: %s (error %v)", id, left, err)
	}
}

func limits(t *testing.T, s *suite) {
	s.runSandbox(t)
	id := s.create(t, "main", s.Sleep)
	s.start(t, id)
	less := &cri.LinuxContainerResources{CpuShares: 102, CpuQuota: 20000, CpuPeriod: 100000,
		MemoryLimitInBytes: 64 << 20}
	for range 2 {
		if err := s.r.UpdateContainer(s.ctx, id, less); err != nil {
			t.Fatalf("changing the limits: %v", err)
		}
	}
	if c := s.await(t, id, observed.Running); c.Attempt != 0 {
		t.Errorf("it runs as %+v", c)
	}
	if err := s.r.UpdateContainer(s.ctx, "nobody", less); err == nil {
		t.Error("the limits of a container that is not there were changed")
	}
}
