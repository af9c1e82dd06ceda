package imagefile

import (
	"debug/elf"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestAProgramBringsWhatItIsLinkedWith(t *testing.T) {
	const program = "/bin/sh" // dynamically linked on every distribution that has gcc
	entries, err := Program("/app", program)
	if err != nil {
		t.Fatal(err)
	}
	if entries[0].Path != "/app" || entries[0].Source != program {
		t.Errorf("the program comes as %+v", entries[0])
	}
	file, err := elf.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	libraries, err := file.ImportedLibraries()
	if err != nil || len(libraries) == 0 {
		t.Fatalf("%s names the libraries %v: %v", program, libraries, err)
	}
	for _, library := range libraries {
		if !slices.ContainsFunc(entries, func(e Entry) bool { return filepath.Base(e.Path) == library }) {
			t.Errorf("%s is missing in %+v", library, entries)
		}
	}
	for i, e := range entries {
		if slices.ContainsFunc(entries[:i], func(before Entry) bool { return before.Path == e.Path }) {
			t.Errorf("%s comes twice", e.Path)
		}
		if _, err := os.Stat(e.Source); err != nil {
			t.Error(err)
		}
	}
}

func TestAMissingProgramIsNamed(t *testing.T) {
	if _, err := Program("/app", "/nosuchfile"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}
