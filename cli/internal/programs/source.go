package programs

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// folder is the one in which a package has the programs, under whatever other folders.
const folder = "bin"

// Unpack returns the folder in which the programs lie that somebody gives: the given one, or the folder into, to which
// it has copied those of the names from a package.
func Unpack(ctx context.Context, given, into string, names []string) (string, error) {
	info, err := os.Stat(given)
	if err != nil {
		return "", fmt.Errorf("--from: %w", err)
	}
	switch {
	case info.IsDir():
		return filepath.Abs(given)
	case strings.HasSuffix(given, ".rpm"):
		return "", fmt.Errorf("--from: keel does not read %s: install it (dnf install), and run keel upgrade without "+
			"--from", given)
	case strings.HasSuffix(given, ".deb"):
		return into, unpackDebian(ctx, given, into, names)
	case strings.HasSuffix(given, ".tar.gz"):
		return into, unpackFile(given, into, names)
	}
	return "", fmt.Errorf("--from: %s must be a folder of programs, or a package of Keelson: .tar.gz or .deb", given)
}

func unpackFile(given, into string, names []string) error {
	packed, err := os.Open(given)
	if err != nil {
		return fmt.Errorf("--from: %w", err)
	}
	defer packed.Close()
	plain, err := gzip.NewReader(packed)
	if err != nil {
		return fmt.Errorf("--from: reading %s: %w", given, err)
	}
	return unpackTar(plain, given, into, names)
}

// unpackDebian leaves the compression of a package to dpkg's own tool.
func unpackDebian(ctx context.Context, given, into string, names []string) error {
	var complaint bytes.Buffer
	run := exec.CommandContext(ctx, "dpkg-deb", "--fsys-tarfile", given)
	run.Stderr, run.WaitDelay = &complaint, time.Second
	plain, err := run.StdoutPipe()
	if err == nil {
		err = run.Start()
	}
	if err != nil {
		return fmt.Errorf("--from: reading %s: %w: take the .tar.gz where there is no dpkg", given, err)
	}
	unpacked := unpackTar(plain, given, into, names)
	_, _ = io.Copy(io.Discard, plain) // it ends once it is read
	if err := run.Wait(); err != nil {
		return fmt.Errorf("--from: reading %s: %w: %s", given, err, strings.TrimSpace(complaint.String()))
	}
	return unpacked
}

// unpackTar copies programs from an archive to an empty folder.
func unpackTar(plain io.Reader, given, into string, names []string) error {
	if err := errors.Join(os.RemoveAll(into), os.MkdirAll(into, 0o700)); err != nil {
		return fmt.Errorf("making a folder for programs: %w", err)
	}
	archive, found := tar.NewReader(plain), 0
	for {
		entry, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("--from: reading %s: %w", given, err)
		}
		name := path.Base(entry.Name)
		if entry.Typeflag != tar.TypeReg || path.Base(path.Dir(entry.Name)) != folder || !slices.Contains(names, name) {
			continue
		}
		if err := write(filepath.Join(into, name), archive); err != nil {
			return fmt.Errorf("--from: unpacking %s: %w", given, err)
		}
		found++
	}
	if found == 0 {
		return fmt.Errorf("--from: %s has none of %s", given, strings.Join(names, ", "))
	}
	return nil
}

// write writes a program that nobody reads before all are written.
func write(file string, content io.Reader) error {
	out, err := os.OpenFile(file, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o700)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, content)
	return errors.Join(err, out.Close())
}
