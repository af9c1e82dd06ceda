package e2e

import (
	"path/filepath"
	"strings"
	"testing"

	"keelson.dev/test/mesh/processes"
	"keelson.dev/test/scenario"
)

// bringsAKind installs a chart with a kind in its folder crds and with objects of that kind, upgrades it, rolls it back
// from an upgrade that the kind's schema refuses, and removes it. What Helm did not write is not touched.
func bringsAKind(t *testing.T, m *processes.Mesh) {
	w := scenario.In(t, m)
	const kind = "customresourcedefinition/books.library.example.com"
	library := func(args ...string) {
		t.Helper()
		if said, err := helmIn(w, w.Namespace, args...); err != nil {
			t.Fatalf("helm %q: %v\n%s", args, err, said)
		}
	}
	books := func(want string) {
		t.Helper()
		expectOutput(w, want, "get", "books", "-o",
			"jsonpath={range .items[*]}{.metadata.name}={.spec.copies},{.spec.shelf} {end}")
	}
	chart := filepath.Join("testdata", "library")
	defer w.TryKubectl("", "delete", kind, "--ignore-not-found", "--timeout=60s")

	library("install", "library", chart)
	books("odyssey=1,fiction ")
	w.Kubectl("patch", "book", "odyssey", "--type=merge", "--patch", `{"spec":{"shelf":"classics"}}`)

	library("upgrade", "library", chart, "--set", "copies=2,books={odyssey,iliad}")
	books("iliad=2,fiction odyssey=2,classics ")

	said, err := helmIn(w, w.Namespace, "upgrade", "library", chart, "--reuse-values", "--set", "copies=10")
	if want := "spec.copies in body should be less than or equal to 9"; err == nil || !strings.Contains(said, want) {
		t.Errorf("an upgrade to 10 copies: %v, %q", err, said)
	}
	library("rollback", "library", "2")
	books("iliad=2,fiction odyssey=2,classics ")
	library("rollback", "library", "1")
	books("odyssey=1,classics ")

	library("uninstall", "library")
	books("")
	w.Kubectl("delete", kind, "--timeout=60s")
	got := w.TryKubectl("", "get", "books")
	if !strings.Contains(got.Stderr, "the server doesn't have a resource type") {
		t.Errorf("of a kind that is removed kubectl says %q", got.Stdout+got.Stderr)
	}
}
