package scenario

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"keelson.dev/test/mesh"
	"keelson.dev/test/mesh/simnode"
)

// RollbackOnFailure asks a Deployment to go back when a rollout fails: it returns to the last complete revision,
// says why, and does so once for a template. Without the annotation a failed rollout stays
// (ProgressDeadlineExceeded).
func RollbackOnFailure(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	w.KubectlWith(web(3, HelloV1, "  progressDeadlineSeconds: 3\n"), "apply", "-f", "-")
	w.Kubectl("annotate", "deployment", "web", "keelson.dev/rollback-on-failure=true")
	w.AwaitAvailable("web", 3)
	w.Await("the revision to be marked as complete", func() Answer {
		if got := w.replicaSets()[HelloV1].Annotations; got["keelson.dev/complete"] != "true" {
			return Saw(strings.Join(deploymentConditions(w), "; "))
		}
		return ""
	})
	w.Kubectl("set", "image", "deployment/web", "web="+simnode.NeverReady)
	const kind appsv1.DeploymentConditionType = "keelson.dev/RolledBack"
	expectCondition(w, kind, corev1.ConditionTrue, "ProgressDeadlineExceeded")
	w.AwaitAvailable("web", 3)
	expectCondition(w, appsv1.DeploymentProgressing, corev1.ConditionTrue, "NewReplicaSetAvailable")
	expectImages(w, HelloV1)
	w.awaitOutput([]string{"RolledBackOnFailure", "of revision 2 has timed out progressing: rolled back to revision 1"},
		"describe", "deployment", "web")
	w.Kubectl("set", "image", "deployment/web", "web="+simnode.NeverReady)
	expectStuck(w, "the same image again")
	expectCondition(w, kind, corev1.ConditionFalse, "RolledBackBefore")
	if got := w.deployment("web").Spec.Template.Spec.Containers[0].Image; got != simnode.NeverReady {
		t.Errorf("it went back once more, to %s", got)
	}
	w.Kubectl("set", "image", "deployment/web", "web="+HelloV2)
	w.AwaitAvailable("web", 3)
	expectImages(w, HelloV2)
	for _, c := range deploymentConditions(w) {
		if strings.HasPrefix(c, string(kind)) {
			t.Errorf("a new template has the condition %s", c)
		}
	}
}

// deploymentConditions returns the conditions of the Deployment web.
func deploymentConditions(w *World) []string {
	var all []string
	for _, c := range w.deployment("web").Status.Conditions {
		all = append(all, string(c.Type)+" "+string(c.Status)+" "+c.Reason+" "+c.Message)
	}
	return all
}
