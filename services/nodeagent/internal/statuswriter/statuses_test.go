package statuswriter

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/services/nodeagent/internal/observed"
	"keelson.dev/services/nodeagent/internal/podstate"
	"keelson.dev/services/nodeagent/internal/status"
)

// web returns a Pod with one container.
func web() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "u1", Generation: 3},
		Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyAlways,
			Containers: []corev1.Container{{Name: "m", Image: "image:1"}}},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
}

// The statuses of the Pod as it starts, runs and ends.
var (
	pending   = statusOf(observed.Pod{}, "")
	sandboxed = statusOf(withSandbox(), "")
	running   = statusOf(withSandbox(instance(observed.Running, 0)), "")
	crashing  = statusOf(withSandbox(instance(observed.Exited, 1)), "CrashLoopBackOff")
	exited    = statusOf(withSandbox(instance(observed.Exited, 0)), "")
)

// statusOf is the status of web as the runtime shows it; its container waits for a reason, if there is one.
func statusOf(seen observed.Pod, waits string) corev1.PodStatus {
	in := status.Input{Now: now, StartedAt: now.Add(-time.Minute), Runtime: "containerd", HostIPs: []string{"10.0.0.1"},
		Pod: web(), Observed: &seen, Plan: podstate.Plan{Goal: podstate.Run}}
	if waits != "" {
		in.Plan.Waiting = map[string]podstate.Waiting{"m": {Reason: waits}}
	}
	return status.Compute(in)
}

var now = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

// withSandbox is a Pod with a sandbox, and with containers in it.
func withSandbox(containers ...observed.Container) observed.Pod {
	return observed.Pod{Sandboxes: []observed.Sandbox{{ID: "s0", Ready: true, IPs: []string{"10.1.0.5", "fd00::5"}}},
		Containers: containers}
}

// instance is an instance of the container in that state.
func instance(state observed.ContainerState, code int32) observed.Container {
	c := observed.Container{ID: "m0", SandboxID: "s0", Name: "m", State: state, StartedAt: now.Add(-10 * time.Second),
		Image: "image:1", ImageID: "sha256:1"}
	if state == observed.Exited {
		c.FinishedAt, c.ExitCode = now.Add(-time.Second), code
	}
	return c
}
