package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"

	"golang.org/x/mod/module"
)

// licences are the names that the files have by which a module is licensed, in its uppermost folder.
var licences = regexp.MustCompile(`(?i)^(un|sub)?(licen[sc]e|copying|copyright|notice|patents)([-._].*)?$`)

// notices collects what the modules that programs were built of ask to be passed on with them.
type notices struct {
	// cache is the folder of modules, goroot that of Go.
	cache, goroot string
	// modules are those that were found, by their folders there.
	modules map[string]string
}

// read finds the modules of a program of Go's, or of all such programs in an archive. Other files have none.
func (n *notices) read(name string) error {
	content, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	return n.find(content)
}

func (n *notices) find(content []byte) error {
	switch {
	case bytes.HasPrefix(content, []byte("\x7fELF")):
		// What is no program of Go's has no such record.
		if info, err := buildinfo.Read(bytes.NewReader(content)); err == nil {
			return n.add(info)
		}
	case bytes.HasPrefix(content, []byte("\x1f\x8b")):
		unpacked, err := gzip.NewReader(bytes.NewReader(content))
		if err != nil {
			return err
		}
		inner, err := io.ReadAll(unpacked)
		if err != nil {
			return err
		}
		return n.find(inner)
	case len(content) > 262 && string(content[257:262]) == "ustar":
		for archive := tar.NewReader(bytes.NewReader(content)); ; {
			if _, err := archive.Next(); errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				return err
			}
			inner, err := io.ReadAll(archive)
			if err != nil {
				return err
			}
			if err := n.find(inner); err != nil {
				return err
			}
		}
	}
	return nil
}

// add takes over the modules of a program, all but our own. What is replaced by a folder is a copy of itself.
func (n *notices) add(info *debug.BuildInfo) error {
	for _, dep := range info.Deps {
		if dep.Replace != nil && dep.Replace.Version != "" && !filepath.IsAbs(dep.Replace.Path) {
			dep = dep.Replace
		}
		if strings.HasPrefix(dep.Path, "keelson.dev/") {
			continue
		}
		path, err := module.EscapePath(dep.Path)
		if err != nil {
			return err
		}
		version, err := module.EscapeVersion(dep.Version)
		if err != nil {
			return err
		}
		n.modules[path+"@"+version] = dep.Path + " " + dep.Version
	}
	return nil
}

// text has each licence once, below the modules that are under it.
func (n *notices) text() ([]byte, error) {
	under := map[string][]string{}
	collect := func(name, dir string) error {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return fmt.Errorf("looking for the licence of %s: %w", name, err)
		}
		found := 0
		for _, entry := range entries {
			if !entry.Type().IsRegular() || !licences.MatchString(entry.Name()) {
				continue
			}
			content, err := os.ReadFile(filepath.Join(dir, entry.Name()))
			if err != nil {
				return fmt.Errorf("reading the licence of %s: %w", name, err)
			}
			text := strings.TrimSpace(strings.ReplaceAll(string(content), "\r\n", "\n"))
			under[text] = append(under[text], name)
			found++
		}
		if found == 0 {
			return fmt.Errorf("%s has no licence in %s, and is in a program", name, dir)
		}
		return nil
	}
	if err := collect("Go", n.goroot); err != nil {
		return nil, err
	}
	for _, folder := range slices.Sorted(maps.Keys(n.modules)) {
		if err := collect(n.modules[folder], filepath.Join(n.cache, folder)); err != nil {
			return nil, err
		}
	}
	texts := slices.SortedFunc(maps.Keys(under), func(a, b string) int {
		return strings.Compare(under[a][0]+a, under[b][0]+b)
	})
	var all bytes.Buffer
	for _, text := range texts {
		fmt.Fprintf(&all, "%s\n%s\n\n%s\n\n\n", strings.Repeat("=", 80), strings.Join(under[text], "\n"), text)
	}
	return all.Bytes(), nil
}
