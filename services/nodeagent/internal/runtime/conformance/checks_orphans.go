package conformance

import (
	"context"
	"fmt"
	"testing"

	"keelson.dev/services/nodeagent/internal/observed"
)

// orphans looks for orphans repeatedly while containers are created, and then once after one of them was lost. Only
// the lost one ends.
func orphans(t *testing.T, s *suite) {
	s.runSandbox(t)
	looking, stop := context.WithCancel(s.ctx)
	defer stop()
	looks := make(chan error)
	go func() {
		var err error
		for looking.Err() == nil && err == nil {
			err = s.r.EndOrphans(s.ctx)
		}
		looks <- err
	}()
	const containers = 6
	var all []string
	for i := range containers {
		id := s.create(t, fmt.Sprintf("main%d", i), s.Sleep)
		s.start(t, id)
		all = append(all, id)
	}
	created := s.create(t, "created", s.Sleep)
	stop()
	if err := <-looks; err != nil {
		t.Fatalf("ending orphans: %v", err)
	}
	if s.Lose != nil {
		lost := all[0]
		all = all[1:]
		back, err := s.Lose(s.ctx, lost)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.r.EndOrphans(s.ctx); err != nil {
			t.Errorf("ending an orphan: %v", err)
		}
		s.expectGone(t, lost)
		if err := back(s.ctx); err != nil { // or the runtime could not remove what else it has of the container
			t.Fatal(err)
		}
	}
	s.start(t, created)
	pod := s.state(t)
	for _, id := range append(all, created) {
		if c := pod.ByID(id); c == nil || c.State != observed.Running {
			t.Errorf("container %s is %+v, want it to run", id, c)
		}
	}
	if sb := pod.Sandbox(); sb == nil || !sb.Ready {
		t.Errorf("the sandbox is %+v, want it ready", sb)
	}
}

// givenUp looks for orphans after the runtime has given up a sandbox without ending it. Only that one ends.
func givenUp(t *testing.T, s *suite) {
	if s.GiveUp == nil {
		t.Skip("there is no such runtime behind this one")
	}
	s.runSandbox(t)
	remains, err := s.GiveUp(s.ctx)
	if err != nil {
		t.Fatal(err)
	}
	if where, err := remains(); err != nil || where == "" {
		t.Fatalf("nothing is there of the sandbox before it is ended (error %v)", err)
	}
	if err := s.r.EndOrphans(s.ctx); err != nil {
		t.Errorf("ending a sandbox that was given up: %v", err)
	}
	if where, err := remains(); err != nil || where != "" {
		t.Errorf("something is left of the sandbox among the %s (error %v)", where, err)
	}
	pod := s.state(t)
	if sb := pod.Sandbox(); sb == nil || !sb.Ready {
		t.Errorf("the sandbox is %+v, want it ready", sb)
	}
}
