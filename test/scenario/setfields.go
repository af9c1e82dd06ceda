package scenario

import (
	"encoding/base64"
	"strings"
	"testing"

	"keelson.dev/test/mesh"
)

// templated are the kinds whose template kubectl set may change, as kubectl calls them.
var templated = strings.Fields(`replicationcontroller replicaset.apps deployment.apps statefulset.apps daemonset.apps
	cronjob.batch`)

// KubectlSet changes image, environment, resources and account of a template of each kind by kubectl set. The Pods that
// come of it run with them.
func KubectlSet(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	w.KubectlWith(everyWorkload+everyOther, "apply", "-f", "-")
	w.Kubectl("wait", "pod/every", "--for=condition=Ready", "--timeout=90s")
	// Its autoscaler and quota have nothing to do with this.
	w.Kubectl("delete", "hpa,quota", "every")
	all := strings.Join(templated, ",")
	set := func(done string, args ...string) {
		t.Helper()
		w.says(each(templated, done), append([]string{"set"}, args...)...)
	}
	set("image updated", "image", all, "every", "main="+HelloV2)
	set("env updated", "env", all, "every", "SHAPE=round", "SIZE=small")
	set("env updated", "env", all, "every", "--from=configmap/every", "--prefix=CM_")
	set("env updated", "env", all, "every", "SIZE-")
	set("resource requirements updated", "resources", all, "every", "--limits=cpu=300m,memory=64Mi",
		"--requests=cpu=10m")
	set("serviceaccount updated", "serviceaccount", all, "every", "every")
	w.says("# Deployment every, container main\nSHAPE=round\n# CM_COLOUR from configmap every, key colour", "set",
		"env", "deployment/every", "--list")
	w.says("# Deployment every, container main\nSHAPE=round\nCM_COLOUR=blue", "set", "env", "deployment/every",
		"--list", "--resolve")

	w.refuses("", []string{"spec.template: Invalid value", "field is immutable"}, "set", "image", "job/every",
		"main="+HelloV2)
	w.refuses("", []string{"pod updates may not change fields other than `spec.containers[*].image`"}, "set", "env",
		"pod/every", "SHAPE=round")
	w.refuses("", []string{`unable to find container named "side"`}, "set", "image", "deployment/every",
		"side="+HelloV2)
	w.says("service/every selector updated", "set", "selector", "service/every", "of=sts")
	w.says("rolebinding.rbac.authorization.k8s.io/every subjects updated", "set", "subject", "rolebinding/every",
		"--user=ann", "--serviceaccount="+w.Namespace+":default")
	w.says("yes", "auth", "can-i", "get", "pods", "--as=ann")

	// Controllers that replace their Pods have new ones; the others make new Pods when they need some.
	for _, name := range []string{"deployment/every", "statefulset/every", "daemonset/every"} {
		w.Kubectl("rollout", "status", name, "--timeout=90s")
	}
	w.Kubectl("scale", "rc/every", "rs/every", "--replicas=2")
	w.Kubectl("create", "job", "fired", "--from=cronjob/every")
	for of, pods := range map[string]int{"deploy": 1, "sts": 1, "ds": len(m.Nodes()), "rc": 2, "rs": 2, "cj": 1} {
		expectSetFields(w, of, pods)
	}
}

// expectSetFields waits for the Pods, and looks for one that has all that was set.
func expectSetFields(w *World, of string, pods int) {
	w.Helper()
	w.awaitActive("of="+of, pods)
	const want = HelloV2 + " SHAPE CM_COLOUR 10m 300m every"
	w.Await("a Pod of "+of+" that has all", func() Answer {
		got := w.Kubectl("get", "pods", "-l", "of="+of, "-o", `jsonpath={range .items[*]}{.metadata.name} `+
			`{.spec.containers[0].image} {.spec.containers[0].env[*].name} {.spec.containers[0].resources.requests.cpu} `+
			`{.spec.containers[0].resources.limits.cpu} {.spec.serviceAccountName}{"\n"}{end}`)
		for line := range strings.Lines(got) {
			name, has, _ := strings.Cut(strings.TrimSpace(line), " ")
			if has == want {
				expectContainerFields(w, name)
				return ""
			}
		}
		return Saw(got)
	})
}

// expectContainerFields asks a real container for its variables and its account.
func expectContainerFields(w *World, pod string) {
	w.Helper()
	if !w.Mesh.RealContainers() {
		return
	}
	variables := w.Kubectl("exec", pod, "--", "env")
	if !strings.Contains(variables, "SHAPE=round\n") || !strings.Contains(variables, "CM_COLOUR=blue\n") ||
		strings.Contains(variables, "SIZE=") {
		w.Errorf("%s has the variables %s", pod, variables)
	}
	token := w.Kubectl("exec", pod, "--", "cat", "/var/run/secrets/kubernetes.io/serviceaccount/token")
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		w.Fatalf("%s has the token %q", pod, token)
	}
	claims, err := base64.RawURLEncoding.DecodeString(parts[1])
	if want := `"sub":"system:serviceaccount:` + w.Namespace + `:every"`; err != nil ||
		!strings.Contains(string(claims), want) {
		w.Errorf("%s has a token of %s, %v; want %s", pod, claims, err, want)
	}
}
