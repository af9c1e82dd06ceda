package scenario

import (
	"fmt"
	"os"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"keelson.dev/test/mesh"
	"keelson.dev/test/mesh/simnode"
)

// RolloutStatusOfStuckRollout reads what rollout status says of a rollout that cannot go on, in its three ways to end
// early.
//
// DEP-124 DEP-125 DEP-236
func RolloutStatusOfStuckRollout(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	w.KubectlWith(web(3, simnode.NeverReady, ""), "apply", "-f", "-")
	w.awaitOutput([]string{`Waiting for deployment "web" rollout to finish: 0 of 3 updated replicas are available...`},
		"rollout", "status", "deployment/web", "--watch=false")
	w.Kubectl("set", "image", "deployment/web", "web="+HelloV1)
	w.AwaitAvailable("web", 3)
	w.Kubectl("set", "image", "deployment/web", "web="+simnode.NeverReady)
	const waiting = `Waiting for deployment "web" rollout to finish: 1 out of 3 new replicas have been updated...`
	w.awaitOutput([]string{waiting}, "rollout", "status", "deployment/web", "--watch=false")
	w.refuses("", []string{"error: timed out waiting for the condition"}, "rollout", "status", "deployment/web",
		"--timeout=1s")

	command := w.kubectl("rollout", "status", "deployment/web")
	printed, err := command.StdoutPipe()
	if err != nil {
		t.Fatalf("reading kubectl: %v", err)
	}
	if err := command.Start(); err != nil {
		t.Fatalf("starting kubectl: %v", err)
	}
	newLines(printed).await(w, waiting)
	if err := command.Process.Signal(os.Interrupt); err != nil {
		t.Errorf("interrupting kubectl: %v", err)
	}
	_ = command.Wait()
	if d := w.deployment("web"); d.Spec.Paused || d.Spec.Template.Spec.Containers[0].Image != simnode.NeverReady {
		t.Errorf("the interrupt changed the rollout: %v", d.Spec)
	}
	w.Kubectl("set", "image", "deployment/web", "web="+HelloV2)
	w.AwaitAvailable("web", 3)
	w.says(`deployment "web" successfully rolled out`, "rollout", "status", "deployment/web", "--watch=false")
}

// ProgressDeadlineExceeded runs into the progress deadline: Pods that cannot be started or do not get ready, as
// simulated nodes know them, and Pods that may not be made. The old Pods stay, and the next good template repairs it.
//
// DEP-043 DEP-127 DEP-129 DEP-132 DEP-138
func ProgressDeadlineExceeded(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	w.KubectlWith(web(3, HelloV1, "  progressDeadlineSeconds: 3\n"), "apply", "-f", "-")
	w.AwaitAvailable("web", 3)
	for _, image := range []string{simnode.NeverStart, simnode.NeverReady} {
		w.Kubectl("set", "image", "deployment/web", "web="+image)
		expectStuck(w, image)
		if got := w.replicaSets()[HelloV1].Status.AvailableReplicas; got != 3 {
			t.Errorf("%d old Pods are available beside %s", got, image)
		}
	}
	w.Kubectl("scale", "deployment/web", "--replicas=4")
	w.Await("the failed Deployment to be scaled", func() Answer { return wantReplicas(w, "web", 5) })
	w.Kubectl("rollout", "undo", "deployment/web", "--to-revision=1")
	w.AwaitAvailable("web", 4)
	expectCondition(w, appsv1.DeploymentProgressing, corev1.ConditionTrue, "NewReplicaSetAvailable")
	expectImages(w, HelloV1)

	w.Kubectl("patch", "deployment/web", "-p", `{"spec":{"template":{"spec":{"serviceAccountName":"nobody"}}}}`)
	expectStuck(w, "a ServiceAccount that is not there")
	expectCondition(w, appsv1.DeploymentReplicaFailure, corev1.ConditionTrue, "FailedCreate")
	w.Kubectl("create", "serviceaccount", "nobody")
	w.AwaitAvailable("web", 4)
}

// expectStuck waits until the Deployment web has given up, and looks that enough of it is still available.
func expectStuck(w *World, why string) {
	w.Helper()
	r := w.TryKubectl("", "rollout", "status", "deployment/web", "--timeout=60s")
	if r.Code != 1 || !strings.Contains(r.Stderr, `error: deployment "web" exceeded its progress deadline`) {
		w.Errorf("rollout status with %s: status %d, %s%s", why, r.Code, r.Stdout, r.Stderr)
	}
	expectCondition(w, appsv1.DeploymentProgressing, corev1.ConditionFalse, "ProgressDeadlineExceeded")
	expectCondition(w, appsv1.DeploymentAvailable, corev1.ConditionTrue, "MinimumReplicasAvailable")
}

// expectCondition waits for a condition of the Deployment web.
func expectCondition(w *World, kind appsv1.DeploymentConditionType, status corev1.ConditionStatus, reason string) {
	w.Helper()
	w.Await(fmt.Sprintf("condition %s %s %s", kind, status, reason), func() Answer {
		d := w.deployment("web")
		for _, c := range d.Status.Conditions {
			if c.Type == kind && c.Status == status && c.Reason == reason {
				return ""
			}
		}
		return Sawf("%v", d.Status.Conditions)
	})
}
