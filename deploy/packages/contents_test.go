package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/blakesmith/ar"
	"github.com/klauspost/compress/zstd"
	"github.com/sassoftware/go-rpmutils"
)

// entry is what a package says of a file.
type entry struct{ mode, owner, content string }

// programsAndPages are the places that all packages have, with the modes there.
func programsAndPages(programs, share, zsh string) map[string]string {
	places := map[string]string{
		programs + "/":                                  "755",
		programs + "/cni/":                              "755",
		programs + "/images/":                           "755",
		programs + "/images/pause.tar":                  "644",
		programs + "/images/coredns.tar":                "644",
		programs + "/images/hello-1.tar":                "644",
		share + "/man/man1/keel.1.gz":                   "644",
		share + "/man/man1/keel-init.1.gz":              "644",
		share + "/bash-completion/completions/keel":     "644",
		share + "/fish/vendor_completions.d/keel.fish":  "644",
		share + "/zsh/" + zsh + "/_keel":                "644",
		share + "/doc/keelson/":                         "755",
		share + "/doc/keelson/docs/":                    "755",
		share + "/doc/keelson/docs/decisions/":          "755",
		share + "/doc/keelson/docs/explanation/":        "755",
		share + "/doc/keelson/docs/how-to/":             "755",
		share + "/doc/keelson/docs/reference/":          "755",
		share + "/doc/keelson/docs/tutorial/":           "755",
		share + "/doc/keelson/README.md":                "644",
		share + "/doc/keelson/copyright":                "644",
		share + "/doc/keelson/third-party-licences.txt": "644",
	}
	for _, name := range programNames {
		places[programs+"/"+name] = "755"
	}
	return places
}

// expectEntries compares what a package has with what it is to have, and contents with the fixture's.
func expectEntries(t *testing.T, in input, got map[string]entry, want map[string]string, share string) {
	t.Helper()
	for _, file := range documents {
		want[share+"/doc/keelson/"+file] = "644"
	}
	for _, place := range slices.Sorted(maps.Keys(want)) {
		if one, there := got[place]; !there || one.mode != want[place] || one.owner != "root:root" {
			t.Errorf("%s is there: %t, mode %s of %s; want %s of root:root", place, there, one.mode, one.owner,
				want[place])
		}
	}
	for _, place := range slices.Sorted(maps.Keys(got)) {
		if want[place] == "" {
			t.Errorf("%s should not be there", place)
		}
		base := filepath.Base(place)
		content := got[place].content
		switch {
		case slices.Contains(programNames, base) && got[place].mode == "755" && !strings.HasSuffix(content,
			base+in.description):
			t.Errorf("%s is another program", place)
		case strings.HasSuffix(place, ".tar") && content != "image "+strings.TrimSuffix(base, ".tar"):
			t.Errorf("%s is %q", place, content)
		case strings.HasSuffix(place, ".md") && !strings.HasSuffix(place, "/"+content):
			t.Errorf("%s is %q", place, content)
		case strings.HasSuffix(place, ".gz") && content != "man/man1/"+base:
			t.Errorf("%s is %q", place, content)
		}
	}
}

// readTar reads an archive, without the folders that other packages have too.
func readTar(t *testing.T, from io.Reader) map[string]entry {
	t.Helper()
	entries := map[string]entry{}
	for archive := tar.NewReader(from); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return entries
		}
		if err != nil {
			t.Fatal(err)
		}
		if !header.ModTime.Equal(noon) {
			t.Errorf("%s is of %s", header.Name, header.ModTime)
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		one := entry{fmt.Sprintf("%o", header.Mode&0o7777), header.Uname + ":" + header.Gname, string(content)}
		if header.Typeflag == tar.TypeSymlink {
			one.mode, one.content = "link", header.Linkname
		}
		entries[strings.TrimPrefix(header.Name, ".")] = one
	}
}

// readDeb reads the members of a .deb.
func readDeb(t *testing.T, name string) map[string][]byte {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	members := map[string][]byte{}
	for archive := ar.NewReader(file); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return members
		}
		if err != nil {
			t.Fatal(err)
		}
		if members[header.Name], err = io.ReadAll(archive); err != nil {
			t.Fatal(err)
		}
	}
}

// shared are folders that distributions have anyway: a package of Debian's lists them, and none owns them.
var shared = []string{"/usr/", "/usr/bin/", "/usr/lib/", "/usr/share/", "/usr/share/bash-completion/",
	"/usr/share/bash-completion/completions/", "/usr/share/doc/", "/usr/share/fish/",
	"/usr/share/fish/vendor_completions.d/", "/usr/share/man/", "/usr/share/man/man1/", "/usr/share/zsh/",
	"/usr/share/zsh/vendor-completions/"}

func TestDeb(t *testing.T) {
	in := fixture(t, "v1.2.3-rc.1")
	deb, _, _ := packed(t, in)
	if want := "keelson_1.2.3~rc.1_" + runtime.GOARCH + ".deb"; !strings.HasSuffix(deb, "/"+want) {
		t.Errorf("it is %s; want %s", deb, want)
	}
	members := readDeb(t, deb)
	data, err := zstd.NewReader(bytes.NewReader(members["data.tar.zst"]))
	if err != nil {
		t.Fatal(err)
	}
	defer data.Close()
	want := programsAndPages("/usr/lib/keelson/bin", "/usr/share", "vendor-completions")
	want["/usr/lib/keelson/"], want["/usr/bin/keel"] = "755", "link"
	for _, folder := range shared {
		want[folder] = "755"
	}
	got := readTar(t, data)
	expectEntries(t, in, got, want, "/usr/share")
	if link := got["/usr/bin/keel"].content; link != "../lib/keelson/bin/keel" {
		t.Errorf("/usr/bin/keel leads to %s", link)
	}
	packed, err := gzip.NewReader(bytes.NewReader(members["control.tar.gz"]))
	if err != nil {
		t.Fatal(err)
	}
	control := readTar(t, packed)
	for _, line := range []string{"Package: keelson", "Version: 1.2.3~rc.1", "Architecture: " + runtime.GOARCH,
		"Recommends: systemd, kmod, ca-certificates", "Depends: libc6 (>= 2."} {
		if text := control["/control"].content; !strings.Contains("\n"+text, "\n"+line) {
			t.Errorf("%q is not in\n%s", line, text)
		}
	}
	if files := slices.Sorted(maps.Keys(control)); !slices.Equal(files, []string{"/control", "/md5sums", "/postinst",
		"/postrm", "/prerm"}) {
		t.Errorf("dpkg finds %v: nothing is a file of configuration", files)
	}
}

// rpmArch are our architectures in the words of RPM.
var rpmArch = map[string]string{"amd64": "x86_64", "arm64": "aarch64"}

func TestRPM(t *testing.T) {
	in := fixture(t, "v1.2.3-14-gabc1234")
	_, name, _ := packed(t, in)
	if want := "keelson-1.2.3+14.gabc1234-1." + rpmArch[runtime.GOARCH] + ".rpm"; !strings.HasSuffix(name, "/"+want) {
		t.Errorf("it is %s; want %s", name, want)
	}
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	rpm, err := rpmutils.ReadRpm(file)
	if err != nil {
		t.Fatal(err)
	}
	infos, err := rpm.Header.GetFiles()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]entry{}
	for _, info := range infos {
		one := entry{fmt.Sprintf("%o", info.Mode()&0o7777), info.UserName() + ":" + info.GroupName(), ""}
		place := info.Name()
		switch info.Mode() & 0o170000 {
		case 0o040000:
			place = strings.TrimSuffix(place, "/") + "/"
		case 0o120000:
			one.mode, one.content = "link", info.Linkname()
		}
		if info.Flags()&rpmutils.RPMFILE_CONFIG != 0 {
			t.Errorf("%s is configuration", place)
		}
		got[place] = one
	}
	payload := readPayload(t, rpm)
	for place, one := range got {
		if content, there := payload[place]; there && one.mode != "link" {
			one.content = content
			got[place] = one
		}
	}
	want := programsAndPages("/usr/lib/keelson/bin", "/usr/share", "site-functions")
	want["/usr/lib/keelson/"], want["/usr/bin/keel"] = "755", "link"
	for _, folder := range []string{"bash-completion/", "bash-completion/completions/", "fish/",
		"fish/vendor_completions.d/", "zsh/", "zsh/site-functions/"} {
		want["/usr/share/"+folder] = "755"
	}
	expectEntries(t, in, got, want, "/usr/share")
	requires, err := rpm.Header.GetStrings(rpmutils.REQUIRENAME)
	if err != nil || !slices.Contains(requires, "libc.so.6()(64bit)") {
		t.Errorf("it requires %v, %v", requires, err)
	}
	for tag, want := range map[int]string{rpmutils.BUILDHOST: "localhost", rpmutils.LICENSE: "Apache-2.0",
		rpmutils.SUMMARY: "Kubernetes workload API as a mesh of separate daemons"} {
		if got, err := rpm.Header.GetString(tag); got != want {
			t.Errorf("tag %d is %q, %v; want %q", tag, got, err, want)
		}
	}
}

func readPayload(t *testing.T, rpm *rpmutils.Rpm) map[string]string {
	t.Helper()
	files := map[string]string{}
	reader, err := rpm.PayloadReaderExtended()
	if err != nil {
		t.Fatal(err)
	}
	for {
		info, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		files[info.Name()] = string(content)
	}
}

func TestTarball(t *testing.T) {
	in := fixture(t, "v1.2.3")
	_, _, name := packed(t, in)
	if want := "keelson-1.2.3-linux-" + runtime.GOARCH + ".tar.gz"; !strings.HasSuffix(name, "/"+want) {
		t.Errorf("it is %s; want %s", name, want)
	}
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	archive, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	want := programsAndPages("keelson/bin", "keelson/share", "site-functions")
	for _, folder := range shared {
		if rest, ok := strings.CutPrefix(folder, "/usr/share/"); ok && rest != "zsh/vendor-completions/" {
			want["keelson/share/"+rest] = "755"
		}
	}
	want["keelson/share/zsh/site-functions/"] = "755"
	expectEntries(t, in, readTar(t, archive), want, "keelson/share")
}

// TestSameInputGivesSameBytes builds elsewhere, of files of other ages and modes.
func TestSameInputGivesSameBytes(t *testing.T) {
	first, second := fixture(t, "v1.2.3"), fixture(t, "v1.2.3")
	for _, dir := range []string{second.root, second.bin, second.reference} {
		err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
			return errors.Join(err, os.Chmod(path, 0o777), os.Chtimes(path, noon, noon))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	packed(t, first)
	packed(t, second)
	one, err := os.ReadFile(filepath.Join(first.out, sums))
	if err != nil {
		t.Fatal(err)
	}
	other, err := os.ReadFile(filepath.Join(second.out, sums))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(one, other) || bytes.Count(one, []byte("\n")) != 3 {
		t.Errorf("one build gives\n%sand another\n%s", one, other)
	}
}

func TestPackagesOfAnotherBuildGo(t *testing.T) {
	in := fixture(t, "v1.2.3")
	packed(t, in)
	in.description = "v1.2.4"
	packed(t, in)
	left, err := filepath.Glob(filepath.Join(in.out, "*"))
	if err != nil || len(left) != 4 || strings.Contains(strings.Join(left, " "), "1.2.3") {
		t.Errorf("there are %v, %v", left, err)
	}
}

func TestWhatIsMissingIsNamed(t *testing.T) {
	in := fixture(t, "v1.2.3")
	if err := os.Remove(filepath.Join(in.bin, "cni/host-local")); err != nil {
		t.Fatal(err)
	}
	if _, err := in.packages(); err == nil || !strings.Contains(err.Error(), "cni/host-local") {
		t.Errorf("without a program: %v", err)
	}
	in = fixture(t, "unknown")
	if _, err := in.packages(); err == nil || !strings.Contains(err.Error(), "--version") {
		t.Errorf("without a version: %v", err)
	}
}
