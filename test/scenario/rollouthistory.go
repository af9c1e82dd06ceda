package scenario

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/test/mesh"
	"keelson.dev/test/mesh/simnode"
)

const changeCause = "kubernetes.io/change-cause="

// RolloutHistory makes three revisions, the last of which gets stuck, looks at them and goes back.
//
// DEP-006 DEP-023 DEP-047 DEP-081 DEP-083 DEP-084 DEP-085 DEP-087 DEP-088 DEP-089 DEP-090 DEP-092 DEP-094
func RolloutHistory(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	w.KubectlWith(web(2, HelloV1, ""), "apply", "-f", "-")
	w.AwaitAvailable("web", 2)
	w.says("deployment.apps/web \nREVISION  CHANGE-CAUSE\n1         <none>", "rollout", "history", "deployment/web")
	w.refuses("", []string{"no rollout history found"}, "rollout", "undo", "deployment/web")

	w.says("deployment.apps/web image updated", "set", "image", "deployment.v1.apps/web", "web="+HelloV2)
	w.Kubectl("annotate", "deployment/web", changeCause+"second")
	w.AwaitAvailable("web", 2)
	w.Kubectl("set", "image", "deployment/web", "web="+simnode.NeverStart)
	w.Kubectl("annotate", "deployment/web", changeCause+"third", "--overwrite")
	w.awaitOutput([]string{"REVISION  CHANGE-CAUSE\n1         <none>\n2         second\n3         third\n"}, "rollout",
		"history", "deployment/web")

	second := w.replicaSets()[HelloV2]
	if want := "web-" + second.Labels["pod-template-hash"]; second.Name != want {
		t.Errorf("the ReplicaSet's name is %s, want %s", second.Name, want)
	}
	detail := w.Kubectl("rollout", "history", "deployment/web", "--revision=2")
	for _, part := range []string{"revision #2", "app=web", "pod-template-hash=" + second.Labels["pod-template-hash"],
		changeCause[:len(changeCause)-1] + ": second", HelloV2} {
		if !strings.Contains(detail, part) {
			t.Errorf("history of revision 2 lacks %q:\n%s", part, detail)
		}
	}
	w.refuses("", []string{"unable to find"}, "rollout", "history", "deployment/web", "--revision=9")
	w.refuses("", []string{"unable to find"}, "rollout", "undo", "deployment/web", "--to-revision=9")

	w.Kubectl("scale", "deployment", "web", "--replicas=3")
	w.says("deployment.apps/web rolled back", "rollout", "undo", "deployment/web")
	w.AwaitAvailable("web", 3)
	sets, d := w.replicaSets(), w.deployment("web")
	if sets[HelloV2].UID != second.UID || *sets[HelloV2].Spec.Replicas != 3 ||
		*sets[simnode.NeverStart].Spec.Replicas != 0 {
		t.Errorf("after the undo revision 2 has ReplicaSet %s of %d, revision 3 %d", sets[HelloV2].Name,
			*sets[HelloV2].Spec.Replicas, *sets[simnode.NeverStart].Spec.Replicas)
	}
	if d.Annotations["deployment.kubernetes.io/revision"] != "4" || *d.Spec.Replicas != 3 {
		t.Errorf("after the undo: %d replicas, annotations %v", *d.Spec.Replicas, d.Annotations)
	}
	w.awaitOutput([]string{"REVISION  CHANGE-CAUSE\n1         <none>\n3         third\n4         second\n"}, "rollout",
		"history", "deployment/web")
	w.says("deployment.apps/web rolled back", "rollout", "undo", "deployment/web", "--to-revision=1")
	w.AwaitAvailable("web", 3)
	expectImages(w, HelloV1)
	w.says("deployment.apps/web skipped rollback (current template already matches revision 5)", "rollout", "undo",
		"deployment/web", "--to-revision=5")
}

// RolloutPauseAndResume collects two changes of a paused Deployment and rolls them out as one.
//
// DEP-094 DEP-109 DEP-110 DEP-111 DEP-112 DEP-113 DEP-118 DEP-238
func RolloutPauseAndResume(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	w.KubectlWith(web(3, HelloV1, ""), "apply", "-f", "-")
	w.AwaitAvailable("web", 3)
	w.says("deployment.apps/web paused", "rollout", "pause", "deployment/web")
	w.says("deployment.apps/web image updated", "set", "image", "deployment/web", "web="+HelloV2)
	w.says("deployment.apps/web resource requirements updated", "set", "resources", "deployment/web", "-c=web",
		"--limits=cpu=200m,memory=64Mi")
	w.Kubectl("scale", "deployment/web", "--replicas=4")
	w.Await("the paused Deployment to be scaled", func() Answer {
		s := w.deployment("web").Status
		if s.AvailableReplicas != 4 || s.UpdatedReplicas != 0 {
			return Sawf("%d available, %d updated", s.AvailableReplicas, s.UpdatedReplicas)
		}
		return ""
	})
	w.says("deployment.apps/web \nREVISION  CHANGE-CAUSE\n1         <none>", "rollout", "history", "deployment/web")
	if sets := w.replicaSets(); len(sets) != 1 {
		t.Errorf("%d ReplicaSets while paused", len(sets))
	}
	w.says("deployment.apps/web resumed", "rollout", "resume", "deployment/web")
	w.AwaitAvailable("web", 4)
	expectImages(w, HelloV2)
	for _, pod := range w.Pods("app=web") {
		r := pod.Spec.Containers[0].Resources
		if r.Limits.Cpu().String() != "200m" || r.Requests.Cpu().String() != "200m" ||
			r.Requests.Memory().String() != "64Mi" {
			t.Errorf("Pod %s has limits %v and requests %v", pod.Name, r.Limits, r.Requests)
		}
	}
	w.says("deployment.apps/web \nREVISION  CHANGE-CAUSE\n1         <none>\n2         <none>", "rollout", "history",
		"deployment/web")
	w.Kubectl("rollout", "pause", "deployment/web")
	w.refuses("", []string{"paused"}, "rollout", "undo", "deployment/web")
}

// RolloutRestart replaces every Pod although nothing but an annotation of the template changes, and set env is a
// rollout as well.
//
// DEP-017 DEP-238 POD-041 SAF-022
func RolloutRestart(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	w.KubectlWith(web(2, HelloV1, ""), "apply", "-f", "-")
	w.AwaitAvailable("web", 2)
	before := map[string]bool{}
	for _, pod := range w.Pods("app=web") {
		before[pod.Name] = true
	}
	w.says("deployment.apps/web restarted", "rollout", "restart", "deployment/web")
	w.AwaitAvailable("web", 2)
	w.Await("only new Pods", func() Answer {
		pods := w.Pods("app=web")
		for _, pod := range pods {
			if before[pod.Name] || pod.Annotations["kubectl.kubernetes.io/restartedAt"] == "" {
				return Saw("Pod " + pod.Name + " is from before")
			}
		}
		if len(pods) != 2 {
			return Sawf("%d Pods", len(pods))
		}
		return ""
	})
	w.says("deployment.apps/web env updated", "set", "env", "deployment/web", "COLOUR=blue")
	w.AwaitAvailable("web", 2)
	w.Await("the variable in every Pod", func() Answer {
		for _, pod := range w.Pods("app=web") {
			if env := pod.Spec.Containers[0].Env; len(env) != 1 ||
				env[0] != (corev1.EnvVar{Name: "COLOUR", Value: "blue"}) {
				return Sawf("Pod %s has %v", pod.Name, env)
			}
		}
		return ""
	})
}

// WatchReplicaSets follows a rollout with get --watch until its final rows.
//
// DEP-051 DEP-114
func WatchReplicaSets(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	w.KubectlWith(web(3, HelloV1, ""), "apply", "-f", "-")
	w.AwaitAvailable("web", 3)
	first := w.replicaSets()[HelloV1].Name
	command := w.kubectl("get", "rs", "--watch", "--no-headers")
	printed, err := command.StdoutPipe()
	if err != nil {
		t.Fatalf("reading kubectl: %v", err)
	}
	if err := command.Start(); err != nil {
		t.Fatalf("starting kubectl: %v", err)
	}
	t.Cleanup(func() { _ = command.Process.Kill(); _ = command.Wait() })
	lines := newLines(printed)
	lines.await(w, first+" 3 3 3")
	bounds := watchPods(w, "app=web")
	w.Kubectl("set", "image", "deployment/web", "web="+HelloV2)
	w.AwaitAvailable("web", 3)
	bounds.stop()
	if bounds.most > 4 || bounds.fewestAvailable < 3 {
		t.Errorf("at most %d Pods and at least %d available were seen of 3", bounds.most, bounds.fewestAvailable)
	}
	second := w.replicaSets()[HelloV2].Name
	for _, row := range []string{second + " 1 0 0", second + " 3 3 3", first + " 0 0 0"} {
		lines.await(w, row)
	}
}

// ProportionalScaling scales a rollout that is stuck: both ReplicaSets take their shares, by percentages of the new
// size.
//
// DEP-039 DEP-071 DEP-103 DEP-104 DEP-107
func ProportionalScaling(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	w.KubectlWith(web(10, HelloV1, "  strategy: {rollingUpdate: {maxSurge: 3, maxUnavailable: 2}}\n"), "apply", "-f",
		"-")
	w.AwaitAvailable("web", 10)
	w.Kubectl("set", "image", "deployment/web", "web="+simnode.NeverStart)
	awaitReplicaSetSizes(w, 8, 5)
	w.Kubectl("scale", "deployment/web", "--replicas=15")
	awaitReplicaSetSizes(w, 11, 7)
	w.Await("the row of the scaled rollout", func() Answer {
		row := strings.Fields(w.Kubectl("get", "deployment", "web", "--no-headers"))
		if got := strings.Join(row[:4], " "); got != "web 11/15 7 11" {
			return Saw(got)
		}
		return ""
	})
	w.Kubectl("scale", "deployment/web", "--replicas=10")
	awaitReplicaSetSizes(w, 8, 5)

	w.KubectlWith(strings.ReplaceAll(web(4, HelloV1, ""), "web", "percent"), "apply", "-f", "-")
	w.AwaitAvailable("percent", 4)
	w.Kubectl("scale", "deployment/web", "--replicas=0")
	w.Kubectl("set", "image", "deployment/percent", "percent="+simnode.NeverReady)
	w.Await("the surge of 25 % of 4", func() Answer { return wantReplicas(w, "percent", 5) })
	w.Kubectl("scale", "deployment/percent", "--replicas=8")
	w.Await("the surge of 25 % of 8", func() Answer { return wantReplicas(w, "percent", 10) })
}

func wantReplicas(w *World, name string, want int32) Answer {
	if d := w.deployment(name); d.Status.Replicas != want || d.Status.ObservedGeneration != d.Generation {
		return Sawf("%d Pods, want %d", d.Status.Replicas, want)
	}
	return ""
}

// awaitReplicaSetSizes waits until the ReplicaSets of the good and of the stuck image have these sizes.
func awaitReplicaSetSizes(w *World, good, stuck int32) {
	w.Helper()
	w.Await(fmt.Sprintf("ReplicaSets of %d and %d", good, stuck), func() Answer {
		sets := w.replicaSets()
		if len(sets) < 2 {
			return "one ReplicaSet"
		}
		if g, s := sets[HelloV1].Status.Replicas, sets[simnode.NeverStart].Status.Replicas; g != good || s != stuck {
			return Sawf("%d and %d", g, s)
		}
		return ""
	})
}

// DeploymentSelectorReduced gives a Deployment a smaller selector, by deleting it alone and creating it again: the
// ReplicaSet and the Pods stay, with all their labels.
//
// DEP-080
func DeploymentSelectorReduced(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	wide := strings.ReplaceAll(web(2, HelloV1, ""), "{app: web}", "{app: web, tier: x}")
	w.KubectlWith(wide, "apply", "-f", "-")
	w.AwaitAvailable("web", 2)
	set, pods := w.replicaSets()[HelloV1].UID, w.podUIDs("app=web")
	w.Kubectl("delete", "deployment", "web", "--cascade=orphan")
	w.KubectlWith(strings.Replace(wide, "matchLabels: {app: web, tier: x}", "matchLabels: {app: web}", 1), "apply",
		"-f", "-")
	w.AwaitAvailable("web", 2)
	sets := w.replicaSets()
	if len(sets) != 1 || sets[HelloV1].UID != set || sets[HelloV1].Labels["tier"] != "x" {
		t.Errorf("the ReplicaSet was replaced or relabelled: %d, %v", len(sets), sets[HelloV1].Labels)
	}
	if after := w.podUIDs("app=web"); after != pods || len(w.Pods("tier=x")) != 2 {
		t.Errorf("Pods were replaced or relabelled: before %s, after %s", pods, after)
	}
}
