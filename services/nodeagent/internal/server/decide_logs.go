package server

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/kit/seconds"
	"keelson.dev/services/nodeagent/internal/containerlog"
	"keelson.dev/services/nodeagent/internal/observed"
)

// logQuery is what a client requests of a log.
type logQuery struct {
	containerlog.Options
	Previous bool
}

// parseLogQuery reads the parameters of a log request.
func parseLogQuery(values url.Values, now time.Time) (logQuery, error) {
	query := logQuery{Options: containerlog.All}
	for name, flag := range map[string]*bool{"follow": &query.Follow, "previous": &query.Previous,
		"timestamps": &query.Timestamps} {
		if err := parseFlag(values, name, flag); err != nil {
			return query, err
		}
	}
	if err := parseNumber(values, "tailLines", 0, &query.Tail); err != nil {
		return query, err
	}
	if err := parseNumber(values, "limitBytes", 1, &query.Limit); err != nil {
		return query, err
	}
	if err := parseSince(values, now, &query.Since); err != nil {
		return query, err
	}
	return query, parseStream(values.Get("stream"), &query.Only)
}

func parseFlag(values url.Values, name string, flag *bool) error {
	text := values.Get(name)
	if text == "" {
		return nil
	}
	value, err := strconv.ParseBool(text)
	if err != nil {
		return badRequest("%s: %q must be true or false", name, text)
	}
	*flag = value
	return nil
}

func parseNumber(values url.Values, name string, least int64, number *int64) error {
	text := values.Get(name)
	if text == "" {
		return nil
	}
	value, err := strconv.ParseInt(text, 10, 64)
	if err != nil || value < least {
		return badRequest("%s: %q must be a number of at least %d", name, text, least)
	}
	*number = value
	return nil
}

func parseSince(values url.Values, now time.Time, since *time.Time) error {
	ago, moment := values.Get("sinceSeconds"), values.Get("sinceTime")
	switch {
	case ago != "" && moment != "":
		return badRequest("sinceSeconds and sinceTime: at most one may be given")
	case ago != "":
		var n int64
		if err := parseNumber(values, "sinceSeconds", 1, &n); err != nil {
			return err
		}
		*since = now.Add(-seconds.Of(n))
	case moment != "":
		at, err := time.Parse(time.RFC3339, moment)
		if err != nil {
			return badRequest("sinceTime: %q must be a time as in %s", moment, time.RFC3339)
		}
		*since = at
	}
	return nil
}

func parseStream(text string, only *containerlog.Stream) error {
	switch text {
	case "", corev1.LogStreamAll:
		return nil
	case corev1.LogStreamStdout:
		*only = containerlog.Stdout
	case corev1.LogStreamStderr:
		*only = containerlog.Stderr
	default:
		return badRequest("stream: %q must be %s, %s or %s", text, corev1.LogStreamAll, corev1.LogStreamStdout,
			corev1.LogStreamStderr)
	}
	return nil
}

// hasContainer reports whether the Pod's spec names the container.
func hasContainer(pod *corev1.Pod, name string) bool {
	is := func(c corev1.Container) bool { return c.Name == name }
	return slices.ContainsFunc(pod.Spec.Containers, is) || slices.ContainsFunc(pod.Spec.InitContainers, is) ||
		slices.ContainsFunc(pod.Spec.EphemeralContainers,
			func(c corev1.EphemeralContainer) bool { return c.Name == name })
}

// statusOf returns the container's status, or an empty one.
func statusOf(pod *corev1.Pod, name string) corev1.ContainerStatus {
	for _, list := range [][]corev1.ContainerStatus{pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses,
		pod.Status.EphemeralContainerStatuses} {
		for i := range list {
			if list[i].Name == name {
				return list[i]
			}
		}
	}
	return corev1.ContainerStatus{}
}

// loggedInstance returns the instance of the runtime whose log is requested, or an error. The API's status of the
// Pod lags behind: it is used only for what a container without an instance waits for, and for whether one that has
// ended will be followed by another.
func loggedInstance(pod *corev1.Pod, container string, previous bool, has observed.Pod) (*observed.Container, error) {
	if !hasContainer(pod, container) {
		return nil, notFound("container %s is not in pod %s", container, pod.Name)
	}
	status := statusOf(pod, container)
	latest, before := lastTwo(has, container)
	if previous {
		if latest != nil && latest.State == observed.Exited && terminatedID(status.State) != latest.ID {
			return latest, nil // another instance replaces it
		}
		if before == nil {
			return nil, badRequest("previous terminated container %q in pod %q not found", container, pod.Name)
		}
		return before, nil
	}
	switch {
	case latest != nil && latest.State != observed.Created:
		return latest, nil
	case before != nil:
		return before, nil
	case status.State.Waiting != nil && slices.Contains([]string{"ErrImagePull", "ImagePullBackOff", "InvalidImageName",
		"ErrImageNeverPull"}, status.State.Waiting.Reason):
		return nil, badRequest("container %q in pod %q is waiting to start: image can't be pulled", container, pod.Name)
	case status.State.Waiting != nil && status.State.Waiting.Reason != "":
		return nil, badRequest("container %q in pod %q is waiting to start: %v", container, pod.Name,
			status.State.Waiting.Reason)
	case terminatedID(status.State) != "":
		return nil, notFound("unable to retrieve container logs for %s: the instance is gone",
			terminatedID(status.State))
	}
	return nil, badRequest("container %q in pod %q is waiting to start - no logs yet", container, pod.Name)
}

// lastTwo returns the newest instance of a container and the newest one before it that has ended; nil for none.
func lastTwo(has observed.Pod, container string) (latest, before *observed.Container) {
	latest = has.Latest(container)
	for i := range has.Containers {
		c := &has.Containers[i]
		if c.Name == container && c.ID != latest.ID && c.State == observed.Exited {
			return latest, c
		}
	}
	return latest, nil
}

// runningInstance returns the runtime's ID of the running instance, or an error.
func runningInstance(pod *corev1.Pod, container string, has observed.Pod) (string, error) {
	if !hasContainer(pod, container) {
		return "", notFound("container %s is not in pod %s", container, pod.Name)
	}
	latest := has.Latest(container)
	if latest == nil || latest.State != observed.Running {
		return "", badRequest("container %s in pod %s is not running", container, pod.Name)
	}
	return latest.ID, nil
}

func terminatedID(state corev1.ContainerState) string {
	if state.Terminated == nil {
		return ""
	}
	return bareID(state.Terminated.ContainerID)
}

// bareID strips the runtime's name from an ID as the API writes it: containerd://1234.
func bareID(id string) string {
	if _, bare, ok := strings.Cut(id, "://"); ok {
		return bare
	}
	return id
}
