package app

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/kit/introspect"
	"keelson.dev/services/nodeagent/internal/lifecycle"
	"keelson.dev/services/nodeagent/internal/observed"
	"keelson.dev/services/nodeagent/internal/podworker"
)

// explain describes what the node does about a Pod.
func (a *agent) explain(_ context.Context, namespace, name string) (introspect.Explanation, bool) {
	view, ok := a.pool.View(namespace, name)
	if !ok {
		return introspect.Explanation{}, false
	}
	return explanation(a.NodeName, view), true
}

// explanation describes in words what the worker of a Pod does.
func explanation(node string, view podworker.View) introspect.Explanation {
	out := introspect.Explanation{Summary: fmt.Sprintf("node %s: goal %s", node, view.Plan.Goal)}
	hooking := hooking(view)
	if len(hooking) > 0 {
		out.Summary += "; waits for the postStart hook of container " + strings.Join(names(hooking), ", ")
	}
	switch {
	case view.Removed:
		out.Summary += "; the API has no such Pod any more, it is being ended"
	case view.Plan.Outcome != nil:
		out.Summary += "; the Pod failed as a whole: " + view.Plan.Outcome.Message
	case len(view.Ops) > 0:
		out.Summary += fmt.Sprintf("; under way: %s", operations(view))
	case len(view.Plan.Waiting) == 0 && len(view.Faults) == 0 && len(hooking) == 0:
		out.Summary += "; nothing to do"
	}
	for container, w := range view.Plan.Waiting {
		out.Facts = append(out.Facts, introspect.Fact{Time: view.At, Reason: w.Reason, Message: "container " +
			container + ": " + w.Message})
	}
	for operation, f := range view.Faults {
		out.Facts = append(out.Facts, introspect.Fact{Time: f.At, Reason: f.Reason,
			Message: fmt.Sprintf("%s failed %d times: %s", operation, f.Count, f.Message)})
	}
	for _, c := range hooking {
		out.Facts = append(out.Facts, introspect.Fact{Time: c.StartedAt, Reason: "PostStartHook",
			Message: hookText(view.Pod, c)})
	}
	slices.SortFunc(out.Facts, func(a, b introspect.Fact) int {
		return cmp.Or(a.Time.Compare(b.Time), strings.Compare(a.Message, b.Message))
	})
	return out
}

// hooking returns the running instances whose postStart hook has not ended.
func hooking(view podworker.View) (instances []observed.Container) {
	for _, c := range view.Containers {
		if view.Plan.Hooking[c.ID] {
			instances = append(instances, c)
		}
	}
	return instances
}

func names(instances []observed.Container) []string {
	all := make([]string, 0, len(instances))
	for _, c := range instances {
		all = append(all, c.Name)
	}
	return all
}

// operations returns the operations under way; for one about a running instance it adds the name of the container.
func operations(view podworker.View) []string {
	all := slices.Clone(view.Ops)
	for i, operation := range all {
		kind, object, _ := strings.Cut(operation, "/")
		for _, c := range view.Containers {
			if object == c.ID {
				all[i] = kind + "/" + c.Name
			}
		}
	}
	return all
}

// hookText describes the running postStart hook of an instance, since when it runs, and what ends the wait for it.
func hookText(pod *corev1.Pod, instance observed.Container) string {
	what, ends := "", "it is done"
	for _, e := range lifecycle.Entries(pod) {
		if e.Spec.Name != instance.Name || e.Spec.Lifecycle == nil || e.Spec.Lifecycle.PostStart == nil {
			continue
		}
		switch hook := e.Spec.Lifecycle.PostStart; {
		case hook.Exec != nil:
			what, ends = ", a command,", "the command exits"
		case hook.HTTPGet != nil:
			what, ends = ", an HTTP request,", "the request is answered"
		case hook.Sleep != nil:
			what, ends = fmt.Sprintf(", a sleep of %d seconds,", hook.Sleep.Seconds), "that time is over"
		}
	}
	return fmt.Sprintf(
		"container %s: its postStart hook%s has not ended since the container started at %s; until then it "+
			"is neither started nor probed; it ends when %s, or the Pod is deleted",
		instance.Name,
		what,
		instance.StartedAt.UTC().Format(time.RFC3339),
		ends,
	)
}
