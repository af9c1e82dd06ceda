package main

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestDependencies(t *testing.T) {
	for name, test := range map[string]struct {
		versions map[string][]string
		deb, rpm string
		fails    string
	}{
		"of the C library the highest version, as a number": {
			versions: map[string][]string{"libc.so.6": {"", "GLIBC_2.4", "GLIBC_2.34", "GLIBC_2.9", "GLIBC_2.2.5"}},
			deb:      "libc6 (>= 2.34)",
			rpm: "libc.so.6()(64bit), libc.so.6(GLIBC_2.2.5)(64bit), libc.so.6(GLIBC_2.34)(64bit), " +
				"libc.so.6(GLIBC_2.4)(64bit), libc.so.6(GLIBC_2.9)(64bit)",
		},
		"what is private is no version": {
			versions: map[string][]string{"libc.so.6": {"GLIBC_2.34", "GLIBC_PRIVATE"}},
			deb:      "libc6 (>= 2.34)", rpm: "libc.so.6(GLIBC_2.34)(64bit), libc.so.6(GLIBC_PRIVATE)(64bit)",
		},
		"several libraries, some of one package": {
			versions: map[string][]string{"libc.so.6": {"GLIBC_2.34"}, "libresolv.so.2": {"GLIBC_2.36"},
				"libseccomp.so.2": {""}},
			deb: "libc6 (>= 2.36), libseccomp2",
			rpm: "libc.so.6(GLIBC_2.34)(64bit), libresolv.so.2(GLIBC_2.36)(64bit), libseccomp.so.2()(64bit)",
		},
		"the loader is the C library's": {
			versions: map[string][]string{"ld-linux-x86-64.so.2": {"GLIBC_2.3"}},
			rpm:      "ld-linux-x86-64.so.2(GLIBC_2.3)(64bit)",
		},
		"nothing":               {},
		"a library of nobody's": {versions: map[string][]string{"libfoo.so.1": {""}}, fails: "libfoo.so.1"},
	} {
		t.Run(name, func(t *testing.T) {
			link := &linkage{versions: test.versions}
			deb, err := link.deb()
			if test.fails != "" {
				if err == nil || !strings.Contains(err.Error(), test.fails) {
					t.Errorf("got %v", err)
				}
				return
			}
			if got := strings.Join(deb, ", "); err != nil || got != test.deb {
				t.Errorf("Debian: %q, %v; want %q", got, err, test.deb)
			}
			if got := strings.Join(link.rpm(), ", "); got != test.rpm {
				t.Errorf("RPM: %q; want %q", got, test.rpm)
			}
		})
	}
}

func TestReadOfPrograms(t *testing.T) {
	link := &linkage{}
	if err := link.read("version.go"); err != nil || link.arch != "" {
		t.Errorf("a file that is no program: %v, %q", err, link.arch)
	}
	if err := link.read(filepath.Join(t.TempDir(), "nothing")); err == nil {
		t.Error("a file that is not there is taken")
	}
	program := aProgram(t)
	if err := link.read(program); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(
		t.Context(),
		"readelf",
		"--wide",
		"--version-info",
		program,
	).Output(); err == nil {
		for _, version := range link.versions["libc.so.6"] {
			if version != "" && !strings.Contains(string(out), "Name: "+version+" ") {
				t.Errorf("readelf does not tell of %s", version)
			}
		}
		if said := strings.Count(string(out), "Name: GLIBC_"); said != len(slices.DeleteFunc(
			slices.Concat(slices.Collect(maps.Values(link.versions))...), func(v string) bool { return v == "" })) {
			t.Errorf("readelf tells of %d versions, and we of %v", said, link.versions)
		}
	}
	other, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	foreign := map[string]byte{"amd64": 183, "arm64": 62}[link.arch]
	for machine, want := range map[byte]string{8: "is built for EM_MIPS", foreign: ", and others for " + link.arch} {
		other[18], other[19] = machine, 0
		file := filepath.Join(t.TempDir(), "other")
		if err := os.WriteFile(file, other, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := link.read(file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("machine %d: %v; want %q", machine, err, want)
		}
	}
}
