package scenario

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/test/mesh"
)

// killed is the exit status of a process that SIGKILL has ended.
const killed = 137

// grace is the termination grace period of the Pod ending.
const grace = 3 * time.Second

// ending has a container that ends by SIGTERM with status 7, one that only SIGKILL ends, and one whose image names
// SIGINT as its stop signal: that one ends by it with status 8 and would not by SIGTERM.
const ending = `apiVersion: v1
kind: Pod
metadata: {name: ending}
spec:
  terminationGracePeriodSeconds: 3
  containers:
  - {name: polite, image: "` + Server + `", args: ["-http=", "-term-exit-code=7"]}
  - {name: deaf, image: "` + Server + `", args: ["-http=", "-ignore-term"]}
  - {name: interrupted, image: "` + Interrupted + `", args: ["-http=", "-ignore-term", "-term-exit-code=8"]}
`

// PodTermination deletes a Pod: each container's first process gets its stop signal, and what is left of any process
// when the grace period has passed is killed.
//
// POD-157 POD-158 POD-164 SAF-133 SAF-135
func PodTermination(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	w.KubectlWith(ending, "apply", "-f", "-")
	w.Kubectl("wait", "--for=condition=Ready", "pod/ending", "--timeout=60s")
	// Beside the first process of the deaf container: SIGTERM would end it with 143.
	second := execCommand(w, "ending", "deaf")
	last := deletePod(w, "ending")
	for name, want := range map[string]int32{"polite": 7, "deaf": killed, "interrupted": 8} {
		if got := end(t, last.Status.ContainerStatuses, name).ExitCode; got != want {
			t.Errorf("container %s ended with status %d, want %d", name, got, want)
		}
	}
	// The times in the API are whole seconds.
	polite, deaf := end(t, last.Status.ContainerStatuses, "polite"), end(t, last.Status.ContainerStatuses, "deaf")
	if took := deaf.FinishedAt.Sub(polite.FinishedAt.Time); took < grace-time.Second {
		t.Errorf("the kill came %v after the signal, want %v", took, grace)
	}
	_ = second.Wait()
	if got := second.ProcessState.ExitCode(); got != killed {
		t.Errorf("the second process of the deaf container ended with status %d, want %d", got, killed)
	}
}

// execCommand starts a process beside the first one of a container and returns the kubectl that ends when it does.
func execCommand(w *World, pod, container string) *exec.Cmd {
	w.Helper()
	command := w.kubectl("exec", pod, "-c", container, "--", "sh", "-c", "echo begun; sleep infinity")
	out, err := command.StdoutPipe()
	if err != nil {
		w.Fatal(err)
	}
	if err := command.Start(); err != nil {
		w.Fatal(err)
	}
	newLines(out).await(w, "begun")
	return command
}

// end returns how a container has ended.
func end(t *testing.T, statuses []corev1.ContainerStatus, name string) *corev1.ContainerStateTerminated {
	t.Helper()
	var names []string
	for i := range statuses {
		if s := &statuses[i]; s.Name == name && s.State.Terminated != nil {
			return s.State.Terminated
		}
		names = append(names, statuses[i].Name)
	}
	t.Fatalf("no container %s has ended among %s", name, strings.Join(names, " "))
	return nil
}
