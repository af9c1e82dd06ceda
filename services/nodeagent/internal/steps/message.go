package steps

import (
	"bytes"
	"context"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/nodeagent/internal/containerlog"
	"keelson.dev/services/nodeagent/internal/lifecycle"
	"keelson.dev/services/nodeagent/internal/observed"
	"keelson.dev/services/nodeagent/internal/podfiles"
	"keelson.dev/services/nodeagent/internal/runtime"
)

// How much of a log stands in for a missing termination message.
const (
	fallbackLines = 80
	fallbackBytes = 2048
)

// Message returns the last words of an instance: its termination message, or the end of its log if the container asks for
// that, failed and left none. What cannot be read is no message.
func (s *Steps) Message(pod *corev1.Pod, e lifecycle.Entry, c *observed.Container) string {
	message, err := podfiles.ReadTerminationMessage(c.Annotations[runtime.AnnotationTerminationMessagePath])
	if err == nil && message != "" {
		return message
	}
	if e.Spec.TerminationMessagePolicy != corev1.TerminationMessageFallbackToLogsOnError || c.ExitCode == 0 {
		return ""
	}
	options := containerlog.All
	options.Tail = fallbackLines
	var tail bytes.Buffer
	path := s.Files.ContainerLog(pod, c.Name, c.Attempt)
	if err := containerlog.Read(context.Background(), path, options, nil, containerlog.Writers{Stdout: &tail, Stderr: &tail}); err != nil {
		return ""
	}
	text := tail.Bytes()
	return string(bytes.ToValidUTF8(text[max(0, len(text)-fallbackBytes):], nil))
}
