package e2e

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"keelson.dev/test/mesh/processes"
	"keelson.dev/test/scenario"
)

// operates runs an operator of controller-runtime in Pods, as a chart brings it: with its kind, webhooks for defaults,
// validation and conversion, finalizers and two copies of which one leads. It is upgraded to a second version of the
// kind, loses its Pods, and is removed.
func operates(t *testing.T, m *processes.Mesh) {
	w := scenario.In(t, m)
	importImage(t, m, "operator")
	install := func(verb, generation string) {
		t.Helper()
		said, err := helmIn(w, w.Namespace, verb, "operator", filepath.Join("..", "operator", "chart"), "--set",
			"generation="+generation)
		if err != nil {
			t.Fatalf("helm %s: %v\n%s\n%s", verb, err, said, w.Kubectl("get", "pods,events"))
		}
	}
	install("install", "1")
	defer removeOperator(w)

	w.KubectlWith(page("v1", "first", "{text: one two}"), "create", "-f", "-")
	w.Kubectl("wait", "--for=condition=Ready", "--timeout=60s", "page/first")
	expectOutput(w, "2 10 one two", "get", "page", "first", "-o", "jsonpath={.status.words} {.spec.limit} {.spec.text}")
	expectOutput(w, "one two", "get", "configmap", "first", "-o", "jsonpath={.data.text}")
	refused := w.TryKubectl(page("v1", "wrong", "{text: one two three, limit: 2}"), "create", "-f", "-")
	if want := `admission webhook "validation.operator.example.com" denied the request: spec.text: 3 words, ` +
		`at most 2 are allowed`; !strings.Contains(refused.Stderr, want) {
		t.Errorf("a page with too many words: %q", refused.Stderr)
	}
	empty := w.TryKubectl(page("v1", "empty", `{text: ""}`), "create", "-f", "-")
	if want := "Warning: spec.text: the page is empty"; empty.Code != 0 || !strings.Contains(empty.Stderr, want) {
		t.Errorf("an empty page: %q", empty.Stderr)
	}

	install("upgrade", "2")
	expectOutput(w, `["one two"]`, "get", "pages.v2.operator.example.com", "first", "-o", "jsonpath={.spec.lines}")
	w.KubectlWith(page("v2", "second", "{lines: [one, two]}"), "create", "-f", "-")
	w.Kubectl("wait", "--for=condition=Ready", "--timeout=60s", "page/second")
	expectOutput(w, "one\ntwo 10", "get", "pages.v1.operator.example.com", "second", "-o",
		"jsonpath={.spec.text} {.spec.limit}")
	expectOutput(w, "v1 v2", "get", "customresourcedefinition", "pages.operator.example.com", "-o",
		`jsonpath={.status.storedVersions[0]} {.status.storedVersions[1]}`)

	w.Kubectl("delete", "pods", "--selector", "app=operator", "--wait=false")
	w.Await("the operator's next Pods to write a page", func() scenario.Answer {
		made := w.TryKubectl(page("v1", "third", "{text: three}"), "apply", "-f", "-")
		if made.Code != 0 {
			return scenario.Saw(made.Stderr)
		}
		return scenario.Left(w.TryKubectl("", "wait", "--for=condition=Ready", "--timeout=1s", "page/third").Stderr)
	})
	index := []string{"empty", "first", "second", "third"}
	if got := indexed(w); !slices.Equal(got, index) {
		t.Errorf("the index has %q, want %q", got, index)
	}

	w.Kubectl("delete", "pages", "--all", "--timeout=60s")
	if got := indexed(w); len(got) > 0 {
		t.Errorf("of pages that are gone the index has %q", got)
	}
	w.Await("the texts of pages that are gone to go", func() scenario.Answer {
		const texts = "metadata.name!=kube-root-ca.crt"
		return scenario.Left(w.Kubectl("get", "configmaps", "--field-selector", texts, "-o", "name"))
	})
	removeOperator(w)
	got := w.TryKubectl("", "get", "pages")
	if !strings.Contains(got.Stderr, "the server doesn't have a resource type") {
		t.Errorf("of a kind that is removed kubectl says %q", got.Stdout+got.Stderr)
	}
}

// page is a manifest of the operator's kind.
func page(version, name, spec string) string {
	const manifest = "apiVersion: operator.example.com/%s\nkind: Page\nmetadata: {name: %s}\nspec: %s\n"
	return fmt.Sprintf(manifest, version, name, spec)
}

// indexed are the names of the pages in the operator's index.
func indexed(w *scenario.World) []string {
	w.Helper()
	names := strings.Fields(w.Kubectl("get", "configmaps", "-o", "jsonpath={range .items[*]}{.data.page} {end}"))
	for i, name := range names {
		names[i] = strings.TrimPrefix(name, w.Namespace+"/")
	}
	slices.Sort(names)
	return names
}

// removeOperator takes the chart away, if it is there, and its kind, which goes when its last object has.
func removeOperator(w *scenario.World) {
	w.Helper()
	_, _, err := helm(w, w.Mesh.Kubeconfig(), "status", "operator", "--namespace", w.Namespace)
	if err != nil {
		return
	}
	w.TryKubectl("", "delete", "pages", "--all", "--timeout=60s")
	if said, err := helmIn(w, w.Namespace, "uninstall", "operator"); err != nil {
		w.Errorf("helm uninstall: %v\n%s", err, said)
	}
}

func expectOutput(w *scenario.World, want string, args ...string) {
	w.Helper()
	if got := w.Kubectl(args...); got != want {
		w.Errorf("kubectl %s: %q, want %q", strings.Join(args, " "), got, want)
	}
}

// importImage gives the first node an image that only a test needs.
func importImage(t *testing.T, m *processes.Mesh, name string) {
	t.Helper()
	archive := filepath.Join(scenario.BinDir(), "test-images", name+".tar")
	if out, err := exec.CommandContext(t.Context(), filepath.Join(scenario.BinDir(), "ctr"), "--address",
		m.RuntimeSocket(t), "--namespace", "k8s.io", "images", "import", archive).CombinedOutput(); err != nil {
		t.Fatalf("importing %s: %v\n%s", archive, err, out)
	}
}
