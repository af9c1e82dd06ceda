package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// programNames are those that a mesh needs, as keel looks for them beside itself, and kubectl.
var programNames = []string{"keel", "keelson-apiserver", "keelson-scheduler", "keelson-workload-controllers",
	"keelson-podgc", "keelson-nodeagent", "containerd", "containerd-shim-runc-v2", "ctr", "runc", "kubectl",
	"cni/bridge", "cni/host-local", "cni/loopback", "cni/keelson-hostport"}

// aProgram is a small one of this machine's, which may take the place of any other.
func aProgram(t *testing.T) string {
	t.Helper()
	program, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	if program, err = filepath.EvalSymlinks(program); err != nil {
		t.Fatal(err)
	}
	return program
}

// documents stand for the repository's.
var documents = []string{"docs/spec-status.md", "docs/tutorial/first.md", "docs/how-to/init.md",
	"docs/reference/api.md", "docs/explanation/security.md", "docs/decisions/0001-first.md"}

// fixture is a repository with our packages.yaml and small programs, so that packages take no time.
func fixture(t *testing.T, description string) input {
	t.Helper()
	dir := t.TempDir()
	in := input{
		root:        filepath.Join(dir, "root"),
		bin:         filepath.Join(dir, "bin"),
		reference:   filepath.Join(dir, "reference"),
		out:         filepath.Join(dir, "out"),
		goroot:      filepath.Join(dir, "go"),
		description: description,
		committed:   noon,
	}
	program, err := os.ReadFile(aProgram(t))
	if err != nil {
		t.Fatal(err)
	}
	put := func(file string, content string, mode os.FileMode) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.CopyFS(filepath.Join(in.root, "deploy/packages/scripts"), os.DirFS("scripts")); err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadFile("packages.yaml")
	if err != nil {
		t.Fatal(err)
	}
	put(filepath.Join(in.root, "deploy/packages/packages.yaml"), string(list), 0o600)
	for _, name := range append([]string{"README.md", "LICENSE"}, documents...) {
		put(filepath.Join(in.root, name), name, 0o600)
	}
	put(filepath.Join(in.root, "docs/drawing.svg"), "no document", 0o600)
	put(filepath.Join(in.goroot, "LICENSE"), "as you like", 0o600)
	for _, name := range programNames {
		put(filepath.Join(in.bin, name), string(program)+name+description, 0o700)
	}
	for _, name := range []string{"golangci-lint", "coredns", "gotestsum"} {
		put(filepath.Join(in.bin, name), string(program), 0o755)
	}
	for _, name := range []string{"pause", "coredns", "hello-1", "hello-2", "testserver", "keelson-podgc"} {
		put(filepath.Join(in.bin, "images", name+".tar"), "image "+name, 0o600)
	}
	for _, name := range []string{"man/man1/keel.1.gz", "man/man1/keel-init.1.gz", "zsh/_keel",
		"bash-completion/completions/keel", "fish/vendor_completions.d/keel.fish"} {
		put(filepath.Join(in.reference, name), name, 0o640)
	}
	return in
}

// packed makes the packages of an input and returns the files of the .deb, the .rpm and the tarball.
func packed(t *testing.T, in input) (deb, rpm, tarball string) {
	t.Helper()
	made, err := in.packages()
	if err != nil {
		t.Fatal(err)
	}
	if len(made) != 4 || made[3] != sums {
		t.Fatalf("there are %v", made)
	}
	return filepath.Join(in.out, made[0]), filepath.Join(in.out, made[1]), filepath.Join(in.out, made[2])
}
