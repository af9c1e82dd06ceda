package scenario

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/test/mesh"
)

// ApplyAndDelete manages a file of two objects, a URL and a kustomization.
//
// DEP-216 DEP-218 DEP-219 DEP-220 DEP-221 DEP-222 DEP-242 DEP-246
func ApplyAndDelete(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	manifest := service + "---\n" + web(1, HelloV1, "")
	dir := w.directory(map[string]string{"app.yaml": manifest, "service.yaml": service, "web.yaml": web(1, HelloV1, ""),
		"kustomize/app.yaml": manifest, "kustomize/kustomization.yaml": "resources: [app.yaml]\n"})
	file := filepath.Join(dir, "app.yaml")
	w.says("service/web-svc created\ndeployment.apps/web created", "apply", "-f", file)
	w.AwaitAvailable("web", 1)

	w.Await("a resourceVersion that applying the same again does not move", func() Answer {
		before := w.deployment("web").ResourceVersion
		w.says("service/web-svc unchanged\ndeployment.apps/web unchanged", "apply", "-f", file)
		if after := w.deployment("web").ResourceVersion; after != before {
			return Sawf("from %s to %s", before, after) // its controller may write the status meanwhile
		}
		return ""
	})
	w.Kubectl("annotate", "deployment/web", "team=blue")
	if got := w.KubectlWith(web(2, HelloV1, ""), "apply", "-f", "-"); got != "deployment.apps/web configured\n" {
		t.Errorf("apply of a change: %s", got)
	}
	if d := w.deployment("web"); *d.Spec.Replicas != 2 || d.Annotations["team"] != "blue" {
		t.Errorf("after the change: %d replicas, annotations %v", *d.Spec.Replicas, d.Annotations)
	}
	w.AwaitAvailable("web", 2)

	edited := ""
	w.Await("what get printed to be applied", func() Answer {
		edited = strings.Replace(w.Kubectl("get", "deployment", "web", "-o", "yaml"), "replicas: 2", "replicas: 3", 1)
		r := w.TryKubectl(edited, "apply", "-f", "-")
		if strings.Contains(r.Stderr, "the object has been modified") {
			return Saw(r.Stderr) // its controller may write the status meanwhile
		}
		if r.Stdout != "deployment.apps/web configured\n" {
			t.Errorf("apply of what get printed: %s%s", r.Stdout, r.Stderr)
		}
		return ""
	})
	w.AwaitAvailable("web", 3)
	w.refuses(edited, []string{"Conflict", "the object has been modified"}, "replace", "-f", "-")

	expectDeleted(w, "delete", "-f", file)
	site := httptest.NewServer(http.FileServer(http.Dir(dir)))
	t.Cleanup(site.Close)
	w.says("service/web-svc created\ndeployment.apps/web created", "apply", "-f", filepath.Join(dir, "service.yaml"),
		"-f", site.URL+"/web.yaml")
	expectDeleted(w, "delete", "deployments/web", "services/web-svc")
	w.says("service/web-svc created\ndeployment.apps/web created", "apply", "-k", filepath.Join(dir, "kustomize"))
	expectDeleted(w, "delete", "deployment,services", "-l", "app=web")
	w.awaitNothing("deployments", "services", "replicasets", "pods")
}

// expectDeleted runs a delete of both objects of the manifest and expects a line of each.
func expectDeleted(w *World, args ...string) {
	w.Helper()
	got := w.Kubectl(args...)
	for _, line := range []string{`deployment.apps "web" deleted`, `service "web-svc" deleted`} {
		if strings.Count(got, line) != 1 || strings.Count(got, "\n") != 2 {
			w.Errorf("kubectl %s printed %q, want one line %q of two", strings.Join(args, " "), got, line)
		}
	}
}

// ApplyRecursively applies and deletes a tree of files, which needs -R.
//
// DEP-227 DEP-228 DEP-229
func ApplyRecursively(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	dir := w.directory(map[string]string{
		"configmap/settings.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n",
		"deployment/web.yaml":     web(1, HelloV1, ""),
		"service/web.yaml":        service,
	})
	w.refuses("", []string{"error: ", "[.json .yaml .yml]"}, "apply", "-f", dir)
	w.awaitNothing("deployments", "services")
	w.says("configmap/settings created\ndeployment.apps/web created\nservice/web-svc created", "apply", "-R", "-f", dir)
	w.AwaitAvailable("web", 1)
	w.says("configmap/settings\ndeployment.apps/web\nservice/web-svc", "get", "-R", "-f", dir, "-o", "name")
	w.says(`deployment "web" successfully rolled out`, "rollout", "status", "-R", "-f",
		filepath.Join(dir, "deployment"))
	if got := w.Kubectl("describe", "-R", "-f", dir); !strings.Contains(got, "StrategyType:") ||
		!strings.Contains(got, "LoadBalancer") {
		t.Errorf("describe -R lacks an object:\n%s", got)
	}
	if got := w.Kubectl("delete", "-R", "-f", dir); strings.Count(got, "deleted") != 3 {
		t.Errorf("delete -R printed %q", got)
	}
	w.awaitNothing("deployments", "services", "replicasets", "pods")
}

// KubectlCreatePipeline makes a Deployment without a manifest and hands printed names to the next command.
//
// DEP-224 DEP-231 DEP-240
func KubectlCreatePipeline(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	w.says("deployment.apps/plain created", "create", "deployment", "plain", "--image="+HelloV1, "--validate=strict")
	w.AwaitAvailable("plain", 1)
	if got := len(w.Pods("app=plain")); got != 1 {
		t.Errorf("%d Pods of label app=plain", got)
	}
	dir := w.directory(map[string]string{"1.yaml": service, "2.yaml": web(3, HelloV1, "")})
	names := strings.Fields(w.Kubectl("create", "-f", dir, "-o", "name"))
	if strings.Join(names, " ") != "service/web-svc deployment.apps/web" {
		t.Fatalf("create -o name printed %v", names)
	}
	if got := w.Kubectl("get", names[0]); !strings.HasPrefix(got, "NAME") || !strings.Contains(got, "web-svc") {
		t.Errorf("get of a printed name: %s", got)
	}
	w.AwaitAvailable("web", 3)
	w.says("deployment.apps/web scaled", "scale", names[1], "--replicas=1")
	w.Await("exactly one Pod", func() Answer {
		if got := strings.Fields(w.Kubectl("get", "pods", "-l", "app=web", "-o", "name")); len(got) != 1 {
			return Sawf("listed: %v", got)
		}
		return ""
	})
	w.refuses("", []string{"Expected replicas to be 5, was 1"}, "scale", names[1], "--current-replicas=5",
		"--replicas=2")
	if got := *w.deployment("web").Spec.Replicas; got != 1 {
		t.Errorf("a refused scale left %d replicas", got)
	}
}

// PatchTypes uses the three kinds of patch.
//
// DEP-233 DEP-247
func PatchTypes(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	w.KubectlWith(web(1, HelloV1, ""), "apply", "-f", "-")
	w.says("deployment.apps/web patched", "patch", "deployment/web", "--type=merge", "-p",
		`{"spec":{"strategy":{"rollingUpdate":{"maxSurge":"100%"}}}}`)
	if r := w.deployment("web").Spec.Strategy.RollingUpdate; r.MaxSurge.String() != "100%" ||
		r.MaxUnavailable.String() != "25%" {
		t.Errorf("strategy after the patch: %v", r)
	}
	w.says("deployment.apps/web patched", "patch", "deployment/web", "-p",
		`{"spec":{"template":{"spec":{"containers":[{"name":"side","image":"`+Server+`"}]}}}}`)
	if c := w.deployment("web").Spec.Template.Spec.Containers; len(c) != 2 {
		t.Errorf("a strategic patch left %d containers", len(c))
	}
	w.says("deployment.apps/web patched", "patch", "deployment/web", "--type=merge", "-p",
		`{"spec":{"template":{"spec":{"containers":[{"name":"side","image":"`+HelloV2+`"}]}}}}`)
	if c := w.deployment("web").Spec.Template.Spec.Containers; len(c) != 1 || c[0].Name != "side" {
		t.Errorf("a merge patch left the containers %v", c)
	}
	w.says("deployment.apps/web patched", "patch", "deployment/web", "--type=json", "-p",
		`[{"op":"replace","path":"/spec/replicas","value":2}]`)
	w.AwaitAvailable("web", 2)
	w.refuses("", []string{"the server rejected our request"}, "patch", "deployment/web", "--type=json", "-p",
		`[{"op":"test","path":"/spec/replicas","value":7}]`)
}

// ApplyOverridesScale shows that a manifest with a number of replicas takes back what kubectl scale had asked for.
//
// DEP-097
func ApplyOverridesScale(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	w.KubectlWith(web(2, HelloV1, ""), "apply", "-f", "-")
	w.says("deployment.apps/web scaled", "scale", "deployment", "web", "--replicas=4")
	w.AwaitAvailable("web", 4)
	if got := w.KubectlWith(web(2, HelloV1, ""), "apply", "-f", "-"); got != "deployment.apps/web configured\n" {
		t.Errorf("apply of the manifest after scale printed %q", got)
	}
	w.AwaitAvailable("web", 2)
}

// KubectlEdit changes the image in an editor, which starts a rollout.
//
// DEP-048 DEP-245
func KubectlEdit(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	w.KubectlWith(web(2, HelloV1, ""), "apply", "-f", "-")
	w.AwaitAvailable("web", 2)
	if got := editWith(w, "sed -i s,"+HelloV1+","+HelloV2+","); got != "deployment.apps/web edited\n" {
		t.Errorf("edit printed %q", got)
	}
	w.AwaitAvailable("web", 2)
	expectImages(w, HelloV2)
	if got := editWith(w, "true"); !strings.Contains(got, "no changes made") {
		t.Errorf("edit without a change printed %q", got)
	}
}

// editWith edits the Deployment web with that editor and returns what kubectl prints.
func editWith(w *World, editor string) string {
	w.Helper()
	command := w.kubectl("edit", "deployment/web")
	command.Env = append(command.Env, "KUBE_EDITOR="+editor)
	printed, err := command.CombinedOutput()
	if err != nil {
		w.Fatalf("kubectl edit: %v, %s", err, printed)
	}
	return string(printed)
}

// ReplaceForce changes what cannot be changed, by creating it again.
//
// DEP-248
func ReplaceForce(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	w.KubectlWith(web(2, HelloV1, ""), "apply", "-f", "-")
	w.AwaitAvailable("web", 2)
	before := w.deployment("web").UID
	changed := strings.ReplaceAll(web(2, HelloV1, ""), "{app: web}", "{app: other}")
	w.refuses(changed, []string{"spec.selector", "field is immutable"}, "replace", "-f", "-")
	got := w.TryKubectl(changed, "replace", "--force", "-f", "-")
	if got.Code != 0 || !strings.Contains(got.Stdout, `deployment.apps "web" deleted`) || !strings.Contains(got.Stdout,
		"deployment.apps/web replaced") {
		t.Errorf("replace --force: status %d, %s%s", got.Code, got.Stdout, got.Stderr)
	}
	w.AwaitAvailable("web", 2)
	if after := w.deployment("web").UID; after == before {
		t.Errorf("the Deployment kept its uid")
	}
	w.Await("the old Pods to go", func() Answer {
		pods, err := w.Client.CoreV1().Pods(w.Namespace).List(w.Context(), metav1.ListOptions{LabelSelector: "app=web"})
		if err != nil {
			return Saw(err.Error())
		}
		if len(pods.Items) != 0 {
			return Sawf("%d are left", len(pods.Items))
		}
		return ""
	})
}
