package scenario

import (
	"strings"
	"testing"

	"keelson.dev/test/mesh"
)

// RolloutOfEachKind takes a Deployment, a DaemonSet and a StatefulSet through what kubectl rollout knows: status,
// history, undo and restart of each, pause and resume where there is such a thing.
//
// DEP-083 DEP-084 DEP-238
func RolloutOfEachKind(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	w.KubectlWith(everyWorkload, "apply", "-f", "-")
	for _, kind := range []struct{ name, of, rolledOut string }{
		{"deployment", "deploy", `deployment "every" successfully rolled out`},
		{"daemonset", "ds", `daemon set "every" successfully rolled out`},
		{"statefulset", "sts", `partitioned roll out complete: 1 new pods have been updated...`},
	} {
		r := rollout{w, kind.name, kind.of}
		r.expect(Server)
		r.history("1")
		r.says("image updated", "set", "image", r.kind+"/every", "main="+HelloV1)
		r.expect(HelloV1)
		w.awaitOutput([]string{kind.rolledOut}, "rollout", "status", r.kind+"/every", "--watch=false")
		r.history("1", "2")
		if got := w.Kubectl("rollout", "history", r.kind+"/every", "--revision=2"); !strings.Contains(got,
			"with revision #2\nPod Template:") || !strings.Contains(got, "Image:\t"+HelloV1+"\n") {
			t.Errorf("the history of %s says of revision 2:\n%s", r.kind, got)
		}
		w.refuses("", []string{"unable to find"}, "rollout", "undo", r.kind+"/every", "--to-revision=9")
		r.says("rolled back", "rollout", "undo", r.kind+"/every")
		r.expect(Server)
		r.history("2", "3")
		r.says("rolled back", "rollout", "undo", r.kind+"/every", "--to-revision=2")
		r.expect(HelloV1)
		before := w.podUIDs("of=" + r.of)
		r.says("restarted", "rollout", "restart", r.kind+"/every")
		r.expect(HelloV1)
		if after := w.podUIDs("of=" + r.of); after == before {
			t.Errorf("the restart of %s left the Pods %s", r.kind, after)
		}
		r.pauses()
	}
	for words, want := range map[string]string{
		"status replicaset/every":  "no status viewer has been implemented for ReplicaSet.apps",
		"history job/every":        `no history viewer has been implemented for "Job.batch"`,
		"restart replicaset/every": `replicasets.apps "every" restarting is not supported`,
		"undo cronjob/every":       `no rollbacker has been implemented for "CronJob.batch"`,
		"status deployment/nobody": `deployments.apps "nobody" not found`,
	} {
		w.refuses("", []string{want}, append([]string{"rollout"}, strings.Fields(words)...)...)
	}
}

// rollout is of one kind; its object is called every.
type rollout struct {
	*World
	kind, of string
}

func (r rollout) says(done string, args ...string) {
	r.Helper()
	r.World.says(r.kind+".apps/every "+done, args...)
}

// expect waits until the rollout is over, and wants its Pods to have the image.
func (r rollout) expect(image string) {
	r.Helper()
	r.Kubectl("rollout", "status", r.kind+"/every", "--timeout=90s")
	r.Await("Pods of "+image+" alone", func() Answer {
		got := r.Kubectl("get", "pods", "-l", "of="+r.of, "-o", "jsonpath={.items[*].spec.containers[0].image}")
		if strings.Trim(strings.ReplaceAll(got, image, ""), " ") != "" || got == "" {
			return Saw(got)
		}
		return ""
	})
}

// history checks that kubectl lists exactly these revisions, none of which has a cause.
func (r rollout) history(revisions ...string) {
	r.Helper()
	want := r.kind + ".apps/every \nREVISION  CHANGE-CAUSE"
	for _, revision := range revisions {
		want += "\n" + revision + "         <none>"
	}
	r.Await("the history "+strings.Join(revisions, " "), func() Answer {
		if got := strings.TrimSpace(r.Kubectl("rollout", "history", r.kind+"/every")); got != want {
			return Saw(got)
		}
		return ""
	})
}

// pauses pauses a Deployment, which then keeps a change to itself until it is resumed; nothing else can be paused.
func (r rollout) pauses() {
	r.Helper()
	if r.kind != "deployment" {
		for _, verb := range []string{"pause", "resume"} {
			r.refuses(
				"",
				[]string{`"every" ` + strings.TrimSuffix(verb, "e") + "ing is not supported"},
				"rollout",
				verb,
				r.kind+"/every",
			)
		}
		return
	}
	r.says("paused", "rollout", "pause", "deployment/every")
	r.refuses("", []string{"is already paused"}, "rollout", "pause", "deployment/every")
	r.says("image updated", "set", "image", "deployment/every", "main="+HelloV2)
	r.Await("the paused Deployment to have seen that", func() Answer {
		if d := r.deployment("every"); d.Status.ObservedGeneration != d.Generation || d.Status.UpdatedReplicas != 0 {
			return Sawf("generation %d, %+v", d.Generation, d.Status)
		}
		return ""
	})
	r.says("resumed", "rollout", "resume", "deployment/every")
	r.refuses("", []string{"is not paused"}, "rollout", "resume", "deployment/every")
	r.expect(HelloV2)
}
