package main

import (
	"cmp"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// linkage is what a system must have for programs to start there.
type linkage struct {
	// arch is in the words of Go.
	arch string
	// versions are those of the symbols that the programs ask of each library for.
	versions map[string][]string
}

// arches are those that the packages may be for: runc's filters of system calls are written for no others.
var arches = map[elf.Machine]string{elf.EM_X86_64: "amd64", elf.EM_AARCH64: "arm64"}

// debianPackages are where Debian has the libraries that our programs may be linked with.
var debianPackages = map[string]string{"libc.so.6": "libc6", "libpthread.so.0": "libc6", "libresolv.so.2": "libc6",
	"libseccomp.so.2": "libseccomp2"}

// read adds what a program asks for. A file that is no program asks for nothing.
func (l *linkage) read(name string) error {
	file, err := elf.Open(name)
	if format := (*elf.FormatError)(nil); errors.As(err, &format) || errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading how a program is linked: %w", err)
	}
	defer func() { _ = file.Close() }()
	arch := arches[file.Machine]
	switch {
	case arch == "":
		return fmt.Errorf("%s is built for %s: packages are made for amd64 and arm64", name, file.Machine)
	case l.arch == "":
		l.arch, l.versions = arch, map[string][]string{}
	case l.arch != arch:
		return fmt.Errorf("%s is built for %s, and others for %s", name, arch, l.arch)
	}
	libraries, err := file.ImportedLibraries()
	if err != nil {
		return fmt.Errorf("reading which libraries %s is linked with: %w", name, err)
	}
	for _, library := range libraries {
		l.versions[library] = append(l.versions[library], "")
	}
	needs, err := file.DynamicVersionNeeds()
	if err != nil {
		return fmt.Errorf("reading which versions of libraries %s needs: %w", name, err)
	}
	for _, need := range needs {
		for _, dep := range need.Needs {
			l.versions[need.Name] = append(l.versions[need.Name], dep.Dep)
		}
	}
	return nil
}

// deb are the dependencies in the words of Debian, where a version of the C library has all symbols of those before.
func (l *linkage) deb() ([]string, error) {
	least := map[string]string{}
	for library, versions := range l.versions {
		if strings.HasPrefix(library, "ld-linux") {
			continue // of the C library, which asks for it
		}
		name := debianPackages[library]
		if name == "" {
			return nil, fmt.Errorf("a program is linked with %s, and debianPackages does not say where Debian has that",
				library)
		}
		least[name] = cmp.Or(least[name], "")
		for _, version := range versions {
			number, glibc := strings.CutPrefix(version, "GLIBC_")
			if glibc && compareNumbers(number, least[name]) > 0 {
				least[name] = number
			}
		}
	}
	var depends []string
	for _, name := range slices.Sorted(maps.Keys(least)) {
		if least[name] == "" {
			depends = append(depends, name)
			continue
		}
		depends = append(depends, fmt.Sprintf("%s (>= %s)", name, least[name]))
	}
	return depends, nil
}

// rpm are the dependencies in the words of RPM, whose packages say of each library and each version that they have it.
func (l *linkage) rpm() []string {
	var depends []string
	for library, versions := range l.versions {
		for _, version := range versions {
			depends = append(depends, fmt.Sprintf("%s(%s)(64bit)", library, version))
		}
	}
	slices.Sort(depends)
	return slices.Compact(depends)
}

// compareNumbers compares versions that are numbers between dots. What is none, as in GLIBC_PRIVATE, is before all.
func compareNumbers(a, b string) int {
	numbers := func(version string) (all []int) {
		for part := range strings.SplitSeq(version, ".") {
			number, err := strconv.Atoi(part)
			if err != nil {
				return nil
			}
			all = append(all, number)
		}
		return all
	}
	return slices.Compare(numbers(a), numbers(b))
}
