package scenario

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"keelson.dev/test/mesh"
)

// published holds the definitions that a project publishes, and the expected results.
type published struct {
	// project is its folder of bin/published: definitions, and examples of objects.
	project string
	// object is one of the examples. status is written to it, as the project's controllers would, and kubectl waits for
	// awaits; both are "" where the kind has no such subresource.
	object, status, awaits string
	// printed is what kubectl then prints of it.
	printed *regexp.Regexp
	// other is an example in a version that is not the stored one, as TYPE.VERSION.GROUP/NAME; "" where there is none.
	other string
	// explained maps the paths of fields to a word in kubectl's explanation of each.
	explained map[string]string
	// refused maps objects to the apiserver's error for each.
	refused map[string]string
}

// ArgoCDDefinitions uses the kinds of Argo CD as they are published.
func ArgoCDDefinitions(t *testing.T, m mesh.Mesh) {
	published{
		project: "argo-cd",
		object:  "application.argoproj.io/guestbook",
		printed: regexp.MustCompile(`(?m)^NAME +SYNC STATUS +HEALTH STATUS\nguestbook +$`),
		explained: map[string]string{
			"application.spec.source.helm.valueFiles": "<[]string>",
			"appproject.spec.sourceRepos":             "<[]string>",
			"appset.spec.goTemplate":                  "<boolean>",
		},
		refused: map[string]string{
			`{apiVersion: argoproj.io/v1alpha1, kind: Application, metadata: {name: wrong}, spec: {project: default}}`:   "spec.destination: Required value",
			`{apiVersion: argoproj.io/v1alpha1, kind: AppProject, metadata: {name: wrong}, spec: {sourceRepos: "any"}}`:  "spec.sourceRepos: Invalid value",
			`{apiVersion: argoproj.io/v1alpha1, kind: AppProject, metadata: {name: wrong}, spec: {sourceRepo: ["any"]}}`: `unknown field "spec.sourceRepo"`,
		},
	}.used(t, m)
}

// CertManagerDefinitions uses the kinds of cert-manager as they are published.
func CertManagerDefinitions(t *testing.T, m mesh.Mesh) {
	published{
		project: "cert-manager",
		object:  "certificate.cert-manager.io/test1",
		status: `{"status": {"conditions": [{"type": "Ready", "status": "True", "reason": "Issued",
		  "lastTransitionTime": "2026-01-01T00:00:00Z", "message": "it is up to date"}]}}`,
		awaits:  "condition=Ready",
		printed: regexp.MustCompile(`(?m)^NAME +READY +SECRET +AGE\ntest1 +True +test1 +[0-9a-z]+$`),
		explained: map[string]string{
			"certificate.spec":                      "secretName\t<string> -required-",
			"issuer.spec.acme.solvers":              "<[]Object>",
			"order.spec":                            "request\t<string> -required-",
			"certificaterequest.spec.usages":        "<[]string>",
			"clusterissuer.spec.vault.auth.appRole": "<Object>",
		},
		refused: map[string]string{
			`{apiVersion: cert-manager.io/v1, kind: Certificate, metadata: {name: wrong}, spec: {secretName: wrong}}`: "spec.issuerRef: Required value",
			`{apiVersion: cert-manager.io/v1, kind: Certificate, metadata: {name: wrong},
			  spec: {secretName: wrong, issuerRef: {name: any}, usages: [everything]}}`: `spec.usages[0]: Unsupported value: "everything"`,
		},
	}.used(t, m)
}

// PrometheusOperatorDefinitions uses the kinds of the Prometheus operator as they are published; one has two versions.
func PrometheusOperatorDefinitions(t *testing.T, m mesh.Mesh) {
	published{
		project: "prometheus-operator",
		object:  "prometheus.monitoring.coreos.com/prometheus",
		status: `{"status": {"paused": false, "replicas": 2, "availableReplicas": 1, "updatedReplicas": 2,
		  "unavailableReplicas": 1, "conditions": [{"type": "Available", "status": "Degraded",
		  "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}`,
		awaits: "jsonpath={.status.availableReplicas}=1",
		other:  "alertmanagerconfigs.v1beta1.monitoring.coreos.com/config-example",
		printed: regexp.MustCompile(
			`(?m)^NAME +VERSION +DESIRED +READY +RECONCILED +AVAILABLE +AGE\nprometheus +1 +Degraded +[0-9a-z]+$`),
		explained: map[string]string{
			"servicemonitor.spec.endpoints.relabelings": "<[]Object>",
			"prometheusrule.spec.groups.rules":          "expr\t<Object> -required-",
			"scrapeconfig.spec.kubernetesSDConfigs":     "<[]Object>",
		},
		refused: map[string]string{
			`{apiVersion: monitoring.coreos.com/v1, kind: PrometheusRule, metadata: {name: wrong},
			  spec: {groups: [{name: one, rules: [{alert: Any, expr: up, for: soon}]}]}}`: "spec.groups[0].rules[0].for: Invalid value",
			`{apiVersion: monitoring.coreos.com/v1, kind: Prometheus, metadata: {name: wrong},
			  spec: {replicas: 1.5}}`: "spec.replicas: Invalid value",
		},
	}.used(t, m)
}

// used has kubectl make, list, print, explain, convert and remove what the project publishes.
func (p published) used(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	dir := filepath.Join(BinDir(), "published", p.project)
	definitions := filepath.Join(dir, "definitions")
	// Some are longer than an annotation may be: client-side apply takes them from no cluster.
	w.Kubectl("apply", "--server-side", "-f", definitions)
	defer w.TryKubectl("", "delete", "--ignore-not-found", "-f", definitions)
	awaitEstablished(w, "-f", definitions)

	examples := publishedExamples(w, filepath.Join(dir, "examples"))
	w.KubectlWith(examples, "apply", "-f", "-")
	again := w.KubectlWith(examples, "apply", "-f", "-")
	if strings.Count(again, "\n") != strings.Count(again, " unchanged\n") {
		t.Errorf("applied again:\n%s", again)
	}
	p.shows(w)
	for path, want := range p.explained {
		if got := w.Kubectl("explain", path); !strings.Contains(got, want) {
			t.Errorf("kubectl explain %s does not tell of %s:\n%s", path, want, got)
		}
	}
	for manifest, want := range p.refused {
		if got := w.TryKubectl(manifest, "create", "-f", "-"); got.Code == 0 || !strings.Contains(got.Stderr, want) {
			t.Errorf("%s\nis answered with %q, want %q", manifest, got.Stdout+got.Stderr, want)
		}
	}
	w.Kubectl("delete", "-f", definitions)
	w.Await("the kinds to be gone", func() Answer {
		got := w.TryKubectl("", "get", p.object)
		if !strings.Contains(got.Stderr, "the server doesn't have a resource type") {
			return Saw(got.Stdout + got.Stderr)
		}
		return ""
	})
}

// shows writes the status of the object, and checks its line of output and its other version.
func (p published) shows(w *World) {
	w.Helper()
	if p.status != "" {
		w.Kubectl("patch", p.object, "--subresource=status", "--type=merge", "-p", p.status)
		w.Kubectl("wait", "--for="+p.awaits, "--timeout=60s", p.object)
	}
	if got := w.Kubectl("get", p.object); !p.printed.MatchString(strings.TrimRight(got, "\n")) {
		w.Errorf("kubectl get %s prints\n%s\nwant %s", p.object, got, p.printed)
	}
	if p.other == "" {
		return
	}
	kind, name, _ := strings.Cut(p.other, "/")
	resource, _ := schema.ParseResourceArg(kind)
	if got := w.Kubectl("get", kind, name, "-o", "jsonpath={.apiVersion}"); got != resource.GroupVersion().String() {
		w.Errorf("%s is of %s", p.other, got)
	}
}

// publishedExamples are the manifests of a folder for the world's namespace.
func publishedExamples(w *World, dir string) string {
	w.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil || len(files) == 0 {
		w.Fatalf("no examples in %s: %v", dir, err)
	}
	var all strings.Builder
	for _, name := range files {
		file, err := os.Open(name)
		if err != nil {
			w.Fatal(err)
		}
		for decoder := utilyaml.NewYAMLOrJSONDecoder(file, 4096); err == nil; {
			var object unstructured.Unstructured
			if err = decoder.Decode(&object.Object); err == nil && object.Object != nil {
				object.SetNamespace("")
				object.SetFinalizers(nil) // no controller is there to take them off
				all.WriteString("---\n" + marshalYAML(w, object.Object))
			}
		}
		if err = errors.Join(file.Close(), err); !errors.Is(err, io.EOF) {
			w.Fatalf("%s: %v", name, err)
		}
	}
	return all.String()
}

func marshalYAML(w *World, object any) string {
	w.Helper()
	text, err := yaml.Marshal(object)
	if err != nil {
		w.Fatal(err)
	}
	return string(text)
}
