package scenario

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"keelson.dev/test/mesh"
)

// QuotaHoldsRollout limits the Pods of a namespace: the rollout of a Deployment that needs one more is refused,
// reports that, and continues when the quota grows. Deleted Pods release their share.
//
// DEP-127 DEP-134 DEP-135 DEP-136 DEP-137
func QuotaHoldsRollout(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	if got := w.Kubectl("create", "quota", "small", "--hard=pods=3,count/replicasets.apps=5"); got !=
		"resourcequota/small created\n" {
		t.Errorf("create printed %q", got)
	}
	awaitQuota(w, "count/replicasets.apps 0 5", "pods 0 3")
	w.KubectlWith(web(3, HelloV1, ""), "apply", "-f", "-")
	w.AwaitAvailable("web", 3)
	awaitQuota(w, "count/replicasets.apps 1 5", "pods 3 3")
	w.Kubectl("set", "image", "deployment/web", "*="+HelloV2)
	w.Await("the refusal is told", func() Answer {
		for _, c := range w.deployment("web").Status.Conditions {
			if c.Type == appsv1.DeploymentReplicaFailure && c.Status == "True" && c.Reason == "FailedCreate" &&
				strings.HasSuffix(c.Message,
					`-" is forbidden: exceeded quota: small, requested: pods=1, used: pods=3, limited: pods=3`) {
				return ""
			}
		}
		return Sawf("%v", w.deployment("web").Status.Conditions)
	})
	w.awaitOutput([]string{"FailedCreate", "exceeded quota: small"}, "get", "events")
	w.Kubectl("patch", "quota", "small", "--type=merge", "-p", `{"spec":{"hard":{"pods":"4"}}}`)
	w.Kubectl("rollout", "status", "deployment/web", "--timeout=60s")
	w.Await("the refusal is forgotten", func() Answer {
		for _, c := range w.deployment("web").Status.Conditions {
			if c.Type == appsv1.DeploymentReplicaFailure {
				return Saw(c.Message)
			}
		}
		return ""
	})
	awaitQuota(w, "count/replicasets.apps 2 5", "pods 3 4")
	w.Kubectl("delete", "deployment", "web")
	awaitQuota(w, "count/replicasets.apps 0 5", "pods 0 4")
	w.Kubectl("delete", "quota", "small")
}

// QuotaOfResources bounds what Pods ask for: who does not say it is refused, and a quota says how much is left.
//
// POD-232 DEP-136
func QuotaOfResources(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	w.Kubectl("create", "quota", "amounts", "--hard=requests.cpu=300m,limits.memory=64Mi")
	w.Kubectl("create", "quota", "idle", "--hard=pods=0", "--scopes=BestEffort")
	awaitQuota(w, "limits.memory 0 64Mi", "requests.cpu 0 300m")
	run := []string{"run", "one", "--image=" + HelloV1, "--dry-run=server"}
	silent := w.TryKubectl("", run...)
	if silent.Code == 0 || !strings.Contains(silent.Stderr,
		"failed quota: amounts: must specify limits.memory for: one; "+
			"requests.cpu for: one") {
		t.Errorf("a Pod that says nothing: status %d, %s", silent.Code, silent.Stderr)
	}
	overrides := func(cpu string) string {
		return `--overrides={"spec":{"containers":[{"name":"one","image":"` + HelloV1 +
			`","resources":{"requests":{"cpu":"` + cpu + `"},"limits":{"memory":"32Mi"}}}]}}`
	}
	w.Kubectl("run", "one", "--image="+HelloV1, overrides("200m"))
	awaitQuota(w, "limits.memory 32Mi 64Mi", "requests.cpu 200m 300m")
	more := w.TryKubectl("", "run", "two", "--image="+HelloV1, overrides("101m"))
	if more.Code == 0 || !strings.Contains(more.Stderr, `pods "two" is forbidden: exceeded quota: amounts, requested: `+
		`requests.cpu=101m, used: requests.cpu=200m, limited: requests.cpu=300m`) {
		t.Errorf("a Pod that asks for too much: status %d, %s", more.Code, more.Stderr)
	}
	w.Kubectl("delete", "pod", "one", "--wait=false")
	awaitQuota(w, "limits.memory 0 64Mi", "requests.cpu 0 300m")
	w.Kubectl("run", "two", "--image="+HelloV1, overrides("101m"))
}

// QuotaOfObjectCounts counts objects of any kind, beside kinds that are not served.
//
// DEP-136
func QuotaOfObjectCounts(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	w.Kubectl("create", "secret", "generic", "early", "--from-literal=a=b")
	w.Kubectl("create", "quota", "kinds", "--hard=secrets=2,count/jobs.batch=1,services=1,services.nodeports=2,"+
		"requests.storage=3Gi,count/widgets.example.com=4")
	awaitQuota(w, "count/jobs.batch 0 1", "requests.storage 0 3Gi", "secrets 1 2", "services 0 1",
		"services.nodeports 0 2")
	w.Kubectl("create", "secret", "generic", "late", "--from-literal=a=b")
	w.refuses("", []string{"exceeded quota: kinds, requested: secrets=1, used: secrets=2, limited: secrets=2"},
		"create", "secret", "generic", "beyond", "--from-literal=a=b")
	w.Kubectl("create", "service", "nodeport", "web", "--tcp=80,81")
	w.Kubectl("create", "job", "one", "--image="+HelloV1)
	awaitQuota(w, "count/jobs.batch 1 1", "services 1 1", "services.nodeports 2 2")
	w.Kubectl("delete", "secret", "early", "late")
	w.Kubectl("delete", "service", "web")
	w.Kubectl("delete", "job", "one")
	awaitQuota(w, "count/jobs.batch 0 1", "secrets 0 2", "services 0 1", "services.nodeports 0 2")
}

// awaitQuota waits until describing the namespace's quotas shows the lines.
func awaitQuota(w *World, lines ...string) {
	w.Helper()
	w.Await("the quota", func() Answer {
		shown := w.Kubectl("describe", "quota")
		var rows []string
		for line := range strings.Lines(shown) {
			rows = append(rows, strings.Join(strings.Fields(line), " "))
		}
		for _, line := range lines {
			if !strings.Contains("\n"+strings.Join(rows, "\n")+"\n", "\n"+line+"\n") {
				return Sawf("%q is missing in\n%s", line, shown)
			}
		}
		return ""
	})
}
