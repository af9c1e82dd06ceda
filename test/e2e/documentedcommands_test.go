package e2e

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"keelson.dev/test/mesh/processes"
	"keelson.dev/test/scenario"
	"keelson.dev/test/transcript"
)

// docs is the folder of the pages.
const docs = "../../docs"

// guides are the pages whose commands are carried out one after the other on one mesh, in this order: some go on from
// the one before.
var guides = []string{
	"find-why-a-pod-is-pending.md", "console.md", "collect-a-support-bundle.md", "take-a-node-out.md",
	"upgrade-one-daemon.md", "move-one-controller.md",
}

// migratePage is the guide that needs another cluster, which a mesh without nodes stands for.
const migratePage = "how-to/migrate.md"

// TestDocumentedCommands carries out what the pages of docs show of a terminal, and holds them against what it says:
// the tutorial from its beginning to its end, and the guides on a mesh of two nodes. TestUpgrade does so with the page
// that needs machines.
func TestDocumentedCommands(t *testing.T) {
	followed := []string{"tutorial/first-mesh.md", upgradePage, migratePage}
	for _, page := range guides {
		followed = append(followed, "how-to/"+page)
	}
	slices.Sort(followed)
	if shown := pagesWithTerminals(t); !slices.Equal(shown, followed) {
		t.Errorf("docs show a terminal (```console) on %v, carried out are %v", shown, followed)
	}
	t.Run("tutorial/first-mesh.md", func(t *testing.T) {
		dir := pageDir(t)
		t.Cleanup(func() { endMesh(t, filepath.Join(dir, dataDir)) })
		follow(t, "tutorial/first-mesh.md", dir)
	})
	m := processes.New(t, 2, processes.WithChart())
	dir := pageDir(t)
	must(t, os.Symlink(m.DataDir, filepath.Join(dir, dataDir)))
	for _, page := range guides {
		if !t.Run("how-to/"+page, func(t *testing.T) {
			follow(t, "how-to/"+page, dir, "KUBECONFIG="+m.Kubeconfig(), "CHART="+chart(t))
		}) {
			return
		}
	}
	t.Run(migratePage, func(t *testing.T) {
		old := processes.New(t, 0)
		follow(t, migratePage, dir, "KUBECONFIG="+m.Kubeconfig(), "OLD="+old.Kubeconfig())
	})
}

// dataDir is where keel looks for a mesh that it is not told of.
const dataDir = ".keelson"

// pageDir returns the folder in which pages are followed; it is removed after the test.
func pageDir(t *testing.T) string {
	t.Helper()
	dir := processes.ShortDir(t)
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	return dir
}

// endMesh ends what a page that was broken off left running.
func endMesh(t *testing.T, dataDir string) {
	if _, err := os.Stat(dataDir); err != nil {
		return
	}
	var out bytes.Buffer
	if err := processes.Program(context.Background(), &out, "keel", "--data-dir", dataDir, "down").Run(); err != nil {
		t.Errorf("keel down: %v\n%s", err, out.String())
	}
}

// pagesWithTerminals names the pages of docs that show a terminal, in order.
func pagesWithTerminals(t *testing.T) []string {
	t.Helper()
	pages, err := fs.Glob(os.DirFS(docs), "*/*.md")
	must(t, err)
	return slices.DeleteFunc(pages, func(page string) bool {
		text, err := os.ReadFile(filepath.Join(docs, page))
		must(t, err)
		return !strings.Contains(string(text), "\n```console\n")
	})
}

// follow carries a page's commands out in a folder, where .keelson is the mesh's.
func follow(t *testing.T, page, dir string, env ...string) {
	t.Helper()
	followBy(t, page, func(script string) (string, error) {
		bash := exec.CommandContext(t.Context(), "bash", "-c", script)
		bash.Dir = dir
		bash.Env = append(os.Environ(), "HOME="+t.TempDir(), "PATH="+scenario.BinDir()+":"+os.Getenv("PATH"))
		bash.Env = append(bash.Env, env...)
		out, err := bash.Output()
		return string(out), err
	})
}

// followBy carries a page's commands out by what runs a script, and returns its output.
func followBy(t *testing.T, page string, run func(script string) (string, error)) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(docs, page))
	if err != nil {
		t.Fatal(err)
	}
	steps, err := transcript.Read(string(text))
	if err != nil {
		t.Fatalf("docs/%s: %v", page, err)
	}
	out, failed := run(transcript.Script(steps))
	ended, rest := transcript.Split(out)
	for i, result := range ended {
		t.Logf("$ %s\n%s", steps[i].Command, result.Said)
		if differs := steps[i].Differs(result); differs != "" {
			t.Errorf("docs/%s:%d: %s; it says\n%s", page, steps[i].Line, differs, result.Said)
		}
	}
	if len(ended) < len(steps) {
		t.Errorf("docs/%s:%d: %s: %v\n%s", page, steps[len(ended)].Line, steps[len(ended)].Command, failed, rest)
	}
}
