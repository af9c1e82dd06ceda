package scenario

import (
	"os"
	"path/filepath"
	"testing"

	"keelson.dev/test/mesh"
)

// twoRooms is a Pod of two containers, each with its own files.
const twoRooms = `apiVersion: v1
kind: Pod
metadata: {name: rooms}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - {name: first, image: "` + Server + `", args: ["-http="]}
  - {name: second, image: "` + Server + `", args: ["-http="], workingDir: /desk}
`

// KubectlCopy copies folders into a container of two and back, by absolute and relative paths.
func KubectlCopy(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	w.KubectlWith(twoRooms, "apply", "-f", "-")
	dir := w.directory(map[string]string{"tree/one": "1\n", "tree/below/two": "2\n"})
	if err := os.Symlink("one", filepath.Join(dir, "tree", "link")); err != nil {
		t.Fatal(err)
	}
	w.Kubectl("wait", "pod/rooms", "--for=condition=Ready", "--timeout=90s")
	tree, room := filepath.Join(dir, "tree"), w.Namespace+"/rooms:"
	w.Kubectl("cp", tree, room+"/tree", "-c", "second")
	w.says("1\n2", "exec", "rooms", "-c", "second", "--", "cat", "/tree/one", "/tree/below/two")
	w.says("one", "exec", "rooms", "-c", "second", "--", "readlink", "/tree/link")
	w.refuses("", []string{"no such file or directory"}, "exec", "rooms", "-c", "first", "--", "ls", "/tree")
	w.Kubectl("cp", filepath.Join(tree, "one"), "rooms:near", "-c", "second")
	w.says("1", "exec", "rooms", "-c", "second", "--", "cat", "/desk/near")

	back := filepath.Join(dir, "back")
	w.Kubectl("cp", room+"/tree", back, "-c", "second")
	for name, want := range map[string]string{"one": "1\n", "below/two": "2\n"} {
		if got, err := os.ReadFile(filepath.Join(back, name)); err != nil || string(got) != want {
			t.Errorf("%s came back as %q: %v", name, got, err)
		}
	}
	for _, row := range []struct{ from, to, container, want string }{
		{"rooms:/nothing", back, "first", "command terminated with exit code 1"},
		{filepath.Join(dir, "nothing"), "rooms:/x", "first", "doesn't exist in local filesystem"},
		{tree, "rooms:/x", "third", "container third is not valid for pod rooms out of: first, second"},
		{"nobody:/x", back, "first", `pods "nobody" not found`},
		{"rooms:/x", "rooms:/y", "first", "one of src or dest must be a local file specification"},
	} {
		w.refuses("", []string{row.want}, "cp", row.from, row.to, "-c", row.container)
	}
}
