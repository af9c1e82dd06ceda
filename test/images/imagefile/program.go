package imagefile

import (
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// libraryFolders are the default folders of a dynamic linker; on multi-architecture systems also one level below
// lib.
var libraryFolders = []string{"/lib64", "/usr/lib64", "/lib/*-linux-*", "/usr/lib/*-linux-*", "/lib", "/usr/lib"}

// Program returns the entries that a program of this machine needs to run at target in an image that holds nothing
// else: itself and, unless it was linked statically, the dynamic linker and the libraries that it names.
func Program(target, source string) ([]Entry, error) {
	entries := []Entry{{Path: target, Source: source, Mode: 0o755}}
	for i := 0; i < len(entries); i++ {
		needed, err := neededBy(entries[i].Source)
		if err != nil {
			return nil, err
		}
		for _, file := range needed {
			if !slices.ContainsFunc(entries,
				func(e Entry) bool { return filepath.Base(e.Path) == filepath.Base(file) }) {
				entries = append(entries, Entry{Path: file, Source: file, Mode: 0o755})
			}
		}
	}
	return entries, nil
}

// neededBy names the dynamic linker and the libraries of one file.
func neededBy(source string) ([]string, error) {
	file, err := elf.Open(source)
	if err != nil {
		return nil, fmt.Errorf("reading the program %s: %w", source, err)
	}
	defer func() { _ = file.Close() }()
	var needed []string
	if section := file.Section(".interp"); section != nil {
		linker, err := section.Data()
		if err != nil {
			return nil, fmt.Errorf("reading the dynamic linker's name in %s: %w", source, err)
		}
		needed = append(needed, strings.TrimRight(string(linker), "\x00"))
	}
	libraries, err := file.ImportedLibraries()
	if err != nil {
		return nil, fmt.Errorf("reading the libraries of %s: %w", source, err)
	}
	for _, library := range libraries {
		found, err := find(library, file.Machine)
		if err != nil {
			return nil, fmt.Errorf("finding %s for %s: %w", library, source, err)
		}
		needed = append(needed, found)
	}
	return needed, nil
}

// find returns where this machine has the library for that processor.
func find(library string, machine elf.Machine) (string, error) {
	for _, folder := range libraryFolders {
		candidates, err := filepath.Glob(filepath.Join(folder, library))
		if err != nil {
			return "", err
		}
		for _, candidate := range candidates {
			file, err := elf.Open(candidate)
			if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
				continue
			}
			if err != nil {
				return "", err
			}
			fits := file.Machine == machine
			if err := file.Close(); err != nil {
				return "", err
			}
			if fits {
				return candidate, nil
			}
		}
	}
	return "", os.ErrNotExist
}
