package server

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"go.uber.org/zap"

	"keelson.dev/services/nodeagent/internal/containerlog"
	"keelson.dev/services/nodeagent/internal/observed"
	"keelson.dev/services/nodeagent/internal/plainfile"
)

// logs streams the log of one container instance.
func (s *Server) logs(w http.ResponseWriter, r *http.Request) error {
	query, err := parseLogQuery(r.URL.Query(), time.Now())
	if err != nil {
		return err
	}
	pod, err := s.pod(r)
	if err != nil {
		return err
	}
	container := r.PathValue("container")
	has, err := s.observe(r.Context(), pod)
	if err != nil {
		return err
	}
	instance, err := loggedInstance(pod, container, query.Previous, has)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	out := &flusher{ResponseWriter: w, controller: http.NewResponseController(w)}
	if query.Follow {
		out.Flush() // so that a follower learns at once that the log exists
	}
	running := func(ctx context.Context) (bool, error) {
		now, err := s.observe(ctx, pod)
		same := now.ByID(instance.ID)
		return same != nil && (same.State == observed.Running || same.State == observed.Created), err
	}
	log := containerlog.Log{Root: plainfile.Root(s.config.LogDir), Path: instance.LogPath}
	err = containerlog.Read(r.Context(), log, query.Options, running, containerlog.Writers{Stdout: out, Stderr: out})
	if err != nil && !out.begun {
		return fmt.Errorf("container %q in pod %q: %w", container, pod.Name, err)
	}
	if err != nil {
		s.config.Log.Info("Reading a log ended early", zap.String("pod", pod.Namespace+"/"+pod.Name),
			zap.String("container", container), zap.Error(err))
	}
	return nil
}

// flusher sends each line to a follower as soon as it is written.
type flusher struct {
	http.ResponseWriter
	controller *http.ResponseController
	// begun means that the client has a part of the answer, so that no error can replace it.
	begun bool
}

// Write implements io.Writer.
func (f *flusher) Write(text []byte) (int, error) {
	f.begun = true
	return f.ResponseWriter.Write(text)
}

// Flush sends what has been written so far.
func (f *flusher) Flush() {
	f.begun = true
	// A client that has gone is noticed by the next write.
	_ = f.controller.Flush()
}
