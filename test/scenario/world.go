// Package scenario says once how Keelson behaves, in the terms of its users. Each scenario runs on every mesh that can
// show it: in one process with simulated nodes, and as real daemons with real containers.
package scenario

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"keelson.dev/test/mesh"
)

// Images of the tests; simulated nodes take any name.
const (
	HelloV1 = "keelson.dev/hello:1"
	HelloV2 = "keelson.dev/hello:2"
	Server  = "keelson.dev/testserver:1"
	// Interrupted is Server with the stop signal SIGINT.
	Interrupted = "keelson.dev/interrupted:1"
)

// patience bounds every wait. It is long, since it only shows when something is broken.
const patience = 90 * time.Second

// interval is how often a wait looks.
const interval = 100 * time.Millisecond

// World is one scenario's part of a mesh: a namespace of its own.
type World struct {
	testing.TB
	Mesh      mesh.Mesh
	Client    kubernetes.Interface
	Namespace string
}

// In makes a world, on a mesh whose controllers run. Its namespace is deleted when the test ends.
func In(t testing.TB, m mesh.Mesh) *World {
	t.Helper()
	client, err := kubernetes.NewForConfig(m.Admin())
	if err != nil {
		t.Fatalf("building the client: %v", err)
	}
	w := &World{TB: t, Mesh: m, Client: client}
	ns, err := client.CoreV1().Namespaces().Create(w.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("making a namespace: %v", err)
	}
	w.Namespace = ns.Name
	t.Cleanup(func() {
		if t.Failed() {
			w.describe()
		}
		w.end()
	})
	// Without it no Pod is taken, and the apiserver does not wait for it for long.
	w.Await("the ServiceAccount of the namespace", func() Answer {
		_, err := client.CoreV1().ServiceAccounts(w.Namespace).Get(w.Context(), "default", metav1.GetOptions{})
		if err != nil {
			return Saw(err.Error())
		}
		return ""
	})
	return w
}

// end deletes the namespace. The connection to an apiserver that was killed meanwhile breaks at the first try.
func (w *World) end() {
	err := wait.PollUntilContextTimeout(context.Background(), interval, 10*time.Second, true,
		func(ctx context.Context) (bool, error) {
			err := w.Client.CoreV1().Namespaces().Delete(ctx, w.Namespace, metav1.DeleteOptions{})
			return err == nil || apierrors.IsNotFound(err), nil
		})
	if err != nil {
		w.Logf("the namespace %s stays: it could not be deleted", w.Namespace)
	}
}

// Alone is In for a scenario that counts on the room of the nodes. It begins when the Pods of those before it are gone.
func Alone(t testing.TB, m mesh.Mesh) *World {
	t.Helper()
	w := In(t, m)
	w.Await("the Pods of the scenarios before to be gone", func() Answer {
		pods, err := w.Client.CoreV1().Pods(metav1.NamespaceAll).List(w.Context(), metav1.ListOptions{})
		if err != nil {
			return Saw(err.Error())
		}
		if n := len(pods.Items); n > 0 {
			return Sawf("%d are there, one of them %s/%s", n, pods.Items[0].Namespace, pods.Items[0].Name)
		}
		return ""
	})
	return w
}

// Answer says what a look saw that is not yet as it should be; the empty one says that all is. It is a type so that no
// text that was read, which is empty where there is nothing to read, passes for that: such a text goes through Saw.
type Answer string

// Saw is the answer of a check that is not done yet; it holds the text that was read.
func Saw(text string) Answer {
	if text == "" {
		return "nothing"
	}
	return Answer(text)
}

// Sawf is Saw of what the format makes.
func Sawf(format string, args ...any) Answer { return Saw(fmt.Sprintf(format, args...)) }

// Left is the answer of a look that is done when the text is empty: a list of what is left, or a complaint.
func Left(text string) Answer { return Answer(text) }

// Await waits until look is done, and fails the test with its last answer after a long time. An error of a request
// while a daemon restarts is just another answer. A look that takes long, as one by kubectl does, is had less often:
// what waits leaves the machine to what it waits for.
func (w *World) Await(what string, look func() Answer) {
	w.Helper()
	deadline := time.Now().Add(patience)
	for {
		began := time.Now()
		answer := look()
		if answer == "" {
			return
		}
		if time.Now().After(deadline) {
			w.Fatalf("waited %v for %s; at last: %s", patience, what, answer)
		}
		select {
		case <-w.Context().Done():
			w.Fatalf("waiting for %s: the test was ended", what)
		case <-time.After(max(interval, 4*time.Since(began))):
		}
	}
}

// describe logs what a person would look at first.
func (w *World) describe() {
	pods, err := w.Client.CoreV1().Pods(w.Namespace).List(context.Background(), metav1.ListOptions{})
	if err != nil {
		w.Logf("no Pods to show: %v", err)
		return
	}
	for i := range pods.Items {
		p := &pods.Items[i]
		w.Logf("Pod %s on %q: %s, deleting %v, %s", p.Name, p.Spec.NodeName, p.Status.Phase, p.DeletionTimestamp != nil,
			states(p))
	}
	events, err := w.Client.CoreV1().Events(w.Namespace).List(context.Background(), metav1.ListOptions{})
	if err != nil {
		w.Logf("no Events to show: %v", err)
		return
	}
	for i := range events.Items {
		e := &events.Items[i]
		w.Logf("Event %s %s/%s: %s", e.Reason, e.InvolvedObject.Kind, e.InvolvedObject.Name, e.Message)
	}
}

func states(p *corev1.Pod) string {
	var parts []string
	for _, c := range p.Status.ContainerStatuses {
		state := "no state"
		switch {
		case c.State.Waiting != nil:
			state = "waiting " + c.State.Waiting.Reason + " " + c.State.Waiting.Message
		case c.State.Running != nil:
			state = "running"
		case c.State.Terminated != nil:
			state = fmt.Sprintf("ended %s %d", c.State.Terminated.Reason, c.State.Terminated.ExitCode)
		}
		parts = append(parts, fmt.Sprintf("%s %s (ready %v, restarts %d)", c.Name, state, c.Ready, c.RestartCount))
	}
	return strings.Join(parts, "; ")
}

// on is the same world, whose failures are those of a part of its test.
func (w *World) on(t *testing.T) *World {
	part := *w
	part.TB = t
	return &part
}

// awaitGone waits until none of the objects is there.
func (w *World) awaitGone(kind string, names ...string) {
	w.Helper()
	w.Await(fmt.Sprintf("%s %v to go", kind, names), func() Answer {
		return Left(w.Kubectl(append([]string{"get", kind, "--ignore-not-found", "-o", "name"}, names...)...))
	})
}

// awaitNothing waits until kubectl lists none of the resources in the namespace.
func (w *World) awaitNothing(resources ...string) {
	w.Helper()
	for _, resource := range resources {
		w.Await("no "+resource, func() Answer {
			r := w.TryKubectl("", "get", resource, "-o", "name")
			none := "No resources found in " + w.Namespace + " namespace."
			return Left(strings.TrimSpace(r.Stdout + strings.TrimPrefix(r.Complaint(), none)))
		})
	}
}
