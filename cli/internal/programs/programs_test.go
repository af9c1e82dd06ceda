package programs

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// put writes a program into a folder of its own and returns its path.
func put(t *testing.T, name, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	must(t, os.WriteFile(file, []byte(content), 0o755))
	return file
}

func TestVersion(t *testing.T) {
	for script, want := range map[string]string{
		"echo keelson-podgc version v1.2.3":         "v1.2.3",
		"echo keelson-podgc version abc1234-dirty ": "abc1234-dirty",
		"echo keelson-scheduler version v1.2.3":     `is no keelson-podgc: asked for its version it says "keelson-sch`,
		"echo keelson-podgc version":                "is no keelson-podgc",
		"exit 3":                                    "for its version: exit status 3",
	} {
		got, err := Version(t.Context(), put(t, "program", "#!/bin/sh\n"+script+"\n"), "keelson-podgc")
		if err != nil {
			got = err.Error()
		}
		if got != want && (err == nil || !strings.Contains(got, want)) {
			t.Errorf("%s: %s, want %s", script, got, want)
		}
	}
	if _, err := Version(t.Context(), put(t, "program", "\x7fELF of another machine"), "keelson-podgc"); err == nil {
		t.Error("what does not run has a version")
	}
}

func TestCopy(t *testing.T) {
	from, dir := put(t, "program", "new"), t.TempDir()
	sum, err := Sum(from)
	must(t, err)
	to := filepath.Join(dir, "program")
	must(t, os.WriteFile(to, []byte("old"), 0o600))
	err = Copy(from, to, strings.Repeat("0", 64))
	if err == nil || !strings.Contains(err.Error(), "changed meanwhile") {
		t.Errorf("a copy of another content: %v", err)
	}
	if content, err := os.ReadFile(to); err != nil || string(content) != "old" {
		t.Errorf("it is %q, %v", content, err)
	}
	must(t, Copy(from, to, sum))
	info, err := os.Stat(to)
	must(t, err)
	if content, err := os.ReadFile(to); err != nil || string(content) != "new" || info.Mode().Perm() != 0o755 {
		t.Errorf("it is %q with %v, %v", content, info.Mode(), err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("left are %v, %v", left, err)
	}
}

// A program that was written anew is read anew, also if it is as long as before.
func TestSums(t *testing.T) {
	file, sums := put(t, "program", "one"), Sums{}
	first, err := sums.Of(file)
	must(t, err)
	must(t, os.WriteFile(file+".new", []byte("two"), 0o755))
	must(t, os.Rename(file+".new", file))
	second, err := sums.Of(file)
	must(t, err)
	if want, err := Sum(file); err != nil || second != want || first == second {
		t.Errorf("the sums are %s and %s, want %s, %v", first, second, want, err)
	}
	if _, err := sums.Of(file + ".gone"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is gone: %v", err)
	}
}

func TestShelf(t *testing.T) {
	shelf := Shelf{Dir: filepath.Join(t.TempDir(), "shelf"), Prefix: ".program-"}
	if sums, err := shelf.Sums(); err != nil || len(sums) > 0 {
		t.Errorf("without a folder: %v, %v", sums, err)
	}
	must(t, os.Mkdir(shelf.Dir, 0o700))
	one, two := strings.Repeat("1", 64), strings.Repeat("2", 64)
	others := []string{".program-config", "program", "program-" + one}
	for _, name := range append(slices.Clone(others), ".program-"+one, ".program-"+two, ".program-"+two+".part") {
		must(t, os.WriteFile(filepath.Join(shelf.Dir, name), nil, 0o600))
	}
	if sums, err := shelf.Sums(); err != nil || !slices.Equal(sums, []string{one, two}) {
		t.Errorf("there are %v, %v", sums, err)
	}
	must(t, shelf.Clear(one))
	left, err := filepath.Glob(filepath.Join(shelf.Dir, "*"))
	must(t, err)
	want := []string{shelf.Path(one)}
	for _, name := range others {
		want = append(want, filepath.Join(shelf.Dir, name))
	}
	slices.Sort(left)
	slices.Sort(want)
	if !slices.Equal(left, want) {
		t.Errorf("left are %v, want %v", left, want)
	}
}

// packed is an archive with files, each of which has its own name as its content.
func packed(t *testing.T, files ...string) []byte {
	t.Helper()
	var archive bytes.Buffer
	out := tar.NewWriter(&archive)
	for _, file := range files {
		must(t, out.WriteHeader(&tar.Header{Name: file, Mode: 0o755, Size: int64(len(file)), Typeflag: tar.TypeReg}))
		_, err := out.Write([]byte(file))
		must(t, err)
	}
	must(t, out.Close())
	return archive.Bytes()
}

func compressed(t *testing.T, content []byte) string {
	t.Helper()
	var small bytes.Buffer
	out := gzip.NewWriter(&small)
	_, err := out.Write(content)
	must(t, errors.Join(err, out.Close()))
	return small.String()
}

var names = []string{"keelson-apiserver", "keelson-nodeagent"}

func TestUnpack(t *testing.T) {
	into := filepath.Join(t.TempDir(), "into")
	given := put(t, "keelson-1.2.3-linux-amd64.tar.gz", compressed(t, packed(t, "keelson/bin/keelson-apiserver",
		"keelson/bin/keelson-podgc", "keelson/share/doc/keelson-nodeagent", "../bin/keelson-nodeagent")))
	for range 2 { // what an earlier one has left makes no difference
		folder, err := Unpack(t.Context(), given, into, names)
		if err != nil || folder != into {
			t.Fatalf("%s, %v", folder, err)
		}
	}
	left, err := os.ReadDir(into)
	must(t, err)
	if len(left) != 2 {
		t.Errorf("there are %v", left)
	}
	content, err := os.ReadFile(filepath.Join(into, "keelson-apiserver"))
	if err != nil || string(content) != "keelson/bin/keelson-apiserver" {
		t.Errorf("the program is %q, %v", content, err)
	}
	dir := t.TempDir()
	if folder, err := Unpack(t.Context(), dir, into, names); err != nil || folder != dir {
		t.Errorf("a folder: %s, %v", folder, err)
	}
}

func TestUnpackRefuses(t *testing.T) {
	for name, row := range map[string]struct{ content, want string }{
		"x.rpm":        {"", "install it (dnf install), and run keel upgrade without --from"},
		"x.zip":        {"", "must be a folder of programs, or a package of Keelson: .tar.gz or .deb"},
		"x.tar.gz":     {"this is no gzip", "gzip: invalid header"},
		"none.tar.gz":  {compressed(t, packed(t, "bin/keel")), "has none of keelson-apiserver, keelson-nodeagent"},
		"short.tar.gz": {compressed(t, packed(t, "bin/keelson-apiserver")[:520]), "unexpected EOF"},
		"x.deb":        {"no archive", "x.deb: exit status"},
	} {
		if _, err := exec.LookPath("dpkg-deb"); err != nil && name == "x.deb" {
			row.want = "take the .tar.gz where there is no dpkg"
		}
		_, err := Unpack(t.Context(), put(t, name, row.content), filepath.Join(t.TempDir(), "into"), names)
		if err == nil || !strings.HasPrefix(err.Error(), "--from: ") || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: got %v, want %s", name, err, row.want)
		}
	}
}

// TestUnpackDebian reads a package as dpkg makes it.
func TestUnpackDebian(t *testing.T) {
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		t.Skip("there is no dpkg here")
	}
	root, into := t.TempDir(), filepath.Join(t.TempDir(), "into")
	for file, content := range map[string]string{"DEBIAN/control": "Package: keelson\nVersion: 1\nArchitecture: all\n" +
		"Maintainer: M <m@example.com>\nDescription: x\n", "usr/lib/keelson/bin/keelson-nodeagent": "agent"} {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(root, file)), 0o755))
		must(t, os.WriteFile(filepath.Join(root, file), []byte(content), 0o755))
	}
	given := filepath.Join(t.TempDir(), "keelson_1_all.deb")
	if out, err := exec.CommandContext(t.Context(), "dpkg-deb", "--build", root, given).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	folder, err := Unpack(t.Context(), given, into, names)
	must(t, err)
	content, err := os.ReadFile(filepath.Join(folder, "keelson-nodeagent"))
	if err != nil || string(content) != "agent" {
		t.Errorf("the program is %q, %v", content, err)
	}
}
