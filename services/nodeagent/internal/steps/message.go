package steps

import (
	"bytes"
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/nodeagent/internal/containerlog"
	"keelson.dev/services/nodeagent/internal/lifecycle"
	"keelson.dev/services/nodeagent/internal/observed"
	"keelson.dev/services/nodeagent/internal/plainfile"
	"keelson.dev/services/nodeagent/internal/podfiles"
	"keelson.dev/services/nodeagent/internal/runtime"
)

// How much of a log replaces a missing termination message, and how long reading it may take.
const (
	fallbackLines = 80
	fallbackBytes = 2048
	fallbackTime  = 5 * time.Second
)

// Message returns the message of an instance that has ended: its termination log, or the end of its log if the
// container asks for that, failed and left none. A message that cannot be read counts as missing.
func (s *Steps) Message(pod *corev1.Pod, e lifecycle.Entry, c *observed.Container) string {
	limit := podfiles.MaxTerminationMessage(len(lifecycle.Entries(pod)))
	message, err := s.Files.ReadTerminationMessage(c.Annotations[runtime.AnnotationTerminationMessagePath], limit)
	if err == nil && message != "" {
		return message
	}
	if e.Spec.TerminationMessagePolicy != corev1.TerminationMessageFallbackToLogsOnError || c.ExitCode == 0 {
		return ""
	}
	// A process may still be writing to the log: it is read for a limited time.
	ctx, cancel := context.WithTimeout(context.Background(), fallbackTime)
	defer cancel()
	options := containerlog.All
	options.Tail = fallbackLines
	tail := ending{limit: min(fallbackBytes, limit)}
	log := containerlog.Log{Root: plainfile.Root(s.Files.LogDir), Path: s.Files.ContainerLog(pod, c.Name, c.Attempt)}
	if err := containerlog.Read(ctx, log, options, nil, containerlog.Writers{Stdout: &tail,
		Stderr: &tail}); err != nil {
		return ""
	}
	return string(bytes.ToValidUTF8(tail.text, nil))
}

// ending keeps the last limit bytes of what is written to it.
type ending struct {
	text  []byte
	limit int
}

// Write implements io.Writer.
func (e *ending) Write(text []byte) (int, error) {
	e.text = append(e.text, text[max(0, len(text)-e.limit):]...)
	e.text = append(e.text[:0], e.text[max(0, len(e.text)-e.limit):]...)
	return len(text), nil
}
