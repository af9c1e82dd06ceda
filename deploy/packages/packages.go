package main

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb" // a format that the library knows once it is linked
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm" // another one
)

// input is all that the packages follow from.
type input struct {
	// root is the repository, bin, reference and out are folders, modules and goroot those of the go command.
	root, bin, reference, out string
	modules, goroot           string
	// description is git's of the commit, committed its date.
	description string
	committed   time.Time
}

// sums is the file of the packages' checksums.
const sums = "SHA256SUMS"

// packages makes them, and a file with their checksums, and returns the names.
func (in input) packages() (made []string, err error) {
	version, err := packageVersion(in.description, in.committed)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "keelson-notices-")
	if err != nil {
		return nil, fmt.Errorf("making a folder for the licences of others: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	config, err := in.config(version, filepath.Join(dir, "notices"))
	if err != nil {
		return nil, err
	}
	link, err := in.look(config, filepath.Join(dir, "notices"))
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(in.out, 0o755); err != nil {
		return nil, fmt.Errorf("making the folder of the packages: %w", err)
	}
	if err := in.removeFormer(); err != nil {
		return nil, err
	}
	var lines bytes.Buffer
	for _, format := range []string{"deb", "rpm", tarFormat} {
		name, err := in.write(config, format, link)
		if err != nil {
			return nil, err
		}
		content, err := os.ReadFile(filepath.Join(in.out, name))
		if err != nil {
			return nil, fmt.Errorf("reading a package back: %w", err)
		}
		fmt.Fprintf(&lines, "%x  %s\n", sha256.Sum256(content), name)
		made = append(made, name)
	}
	if err := os.WriteFile(filepath.Join(in.out, sums), lines.Bytes(), 0o644); err != nil {
		return nil, fmt.Errorf("writing the checksums: %w", err)
	}
	return append(made, sums), nil
}

// config reads packages.yaml. What it calls notices is the file of that name.
func (in input) config(version, notices string) (*nfpm.Config, error) {
	file := filepath.Join(in.root, "deploy/packages/packages.yaml")
	config, err := nfpm.ParseFileWithEnvMapping(file, func(string) string { return "" })
	if err != nil {
		return nil, fmt.Errorf("reading packages.yaml: %w", err)
	}
	config.Version, config.MTime = version, in.committed
	scripts := &config.Scripts
	for _, source := range []*string{&scripts.PostInstall, &scripts.PreRemove, &scripts.PostRemove} {
		*source = in.source(*source)
	}
	for _, content := range config.Contents {
		switch {
		case content.Source == "notices":
			content.Source = notices
		case content.Source != "" && content.Type != files.TypeSymlink:
			content.Source = in.source(content.Source)
		}
	}
	if err := os.WriteFile(notices, nil, 0o600); err != nil {
		return nil, fmt.Errorf("making the file of the licences of others: %w", err)
	}
	return &config, nil
}

// look finds out from the programs for which machines they are, and writes under which licences.
func (in input) look(config *nfpm.Config, file string) (*linkage, error) {
	contents, err := in.contents(config, "")
	if err != nil {
		return nil, err
	}
	link, others := &linkage{}, &notices{cache: in.modules, goroot: in.goroot, modules: map[string]string{}}
	for _, content := range contents {
		if content.Type != files.TypeFile || !strings.HasPrefix(content.Destination, programs) {
			continue
		}
		if err := link.read(content.Source); err != nil {
			return nil, err
		}
		if err := others.read(content.Source); err != nil {
			return nil, fmt.Errorf("reading of what %s is made: %w", content.Destination, err)
		}
	}
	if link.arch == "" {
		return nil, fmt.Errorf("--bin: %s holds no programs: make them with make build", in.bin)
	}
	config.Arch = link.arch
	text, err := others.text()
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return nil, fmt.Errorf("writing the licences of others: %w", err)
	}
	return link, nil
}

// source is where a file is that packages.yaml names.
func (in input) source(name string) string {
	if rest, ok := strings.CutPrefix(name, "bin/"); ok {
		return filepath.Join(in.bin, rest)
	}
	if rest, ok := strings.CutPrefix(name, "reference/"); ok {
		return filepath.Join(in.reference, rest)
	}
	return filepath.Join(in.root, name)
}

// contents are the files, links and folders of the packages of a format, or of any.
func (in input) contents(config *nfpm.Config, format string) (files.Contents, error) {
	listed := slices.DeleteFunc(slices.Clone(config.Contents), func(content *files.Content) bool {
		return format == "" && content.Packager != ""
	})
	contents, err := files.PrepareForPackager(listed, config.Umask, format, false, in.committed)
	if err != nil {
		return nil, fmt.Errorf("finding what packages.yaml lists (make build images makes it): %w", err)
	}
	return contents, nil
}

// removeFormer leaves no packages of another build beside the new ones.
func (in input) removeFormer() error {
	former, err := filepath.Glob(filepath.Join(in.out, "keelson*"))
	if err != nil {
		return fmt.Errorf("looking for former packages: %w", err)
	}
	for _, file := range former {
		if err := os.Remove(file); err != nil {
			return fmt.Errorf("removing a former package: %w", err)
		}
	}
	return nil
}

// write makes the package of a format and returns its name.
func (in input) write(config *nfpm.Config, format string, link *linkage) (name string, err error) {
	if format == tarFormat {
		return in.writeTarball(config)
	}
	info, err := config.Get(format)
	if err != nil {
		return "", fmt.Errorf("reading packages.yaml for %s: %w", format, err)
	}
	info.Depends = link.rpm()
	if format == "deb" {
		if info.Depends, err = link.deb(); err != nil {
			return "", err
		}
	}
	packager, err := nfpm.Get(format)
	if err != nil {
		return "", err
	}
	name = packager.ConventionalFileName(info)
	return name, writeFile(filepath.Join(in.out, name), func(file *os.File) error {
		return packager.Package(info, file)
	})
}

// writeFile writes a file that is there as a whole or not at all.
func writeFile(name string, write func(*os.File) error) error {
	file, err := os.CreateTemp(filepath.Dir(name), ".half-*")
	if err != nil {
		return fmt.Errorf("making %s: %w", filepath.Base(name), err)
	}
	defer func() { _ = os.Remove(file.Name()) }()
	defer file.Close()
	if err := write(file); err != nil {
		return fmt.Errorf("making %s: %w", filepath.Base(name), err)
	}
	if err := file.Chmod(0o644); err != nil {
		return fmt.Errorf("making %s readable: %w", filepath.Base(name), err)
	}
	if err := file.Close(); err != nil {
		return fmt.Errorf("making %s: %w", filepath.Base(name), err)
	}
	if err := os.Rename(file.Name(), name); err != nil {
		return fmt.Errorf("keeping %s: %w", filepath.Base(name), err)
	}
	return nil
}
