package support

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"path"
	"time"
)

// folder holds the files of an archive, so that unpacking it writes nothing beside.
const folder = "keel-support"

// archive writes files into a compressed tar archive.
type archive struct {
	packed *gzip.Writer
	tar    *tar.Writer
	now    time.Time
}

func newArchive(out io.Writer, now time.Time) *archive {
	packed := gzip.NewWriter(out)
	return &archive{packed: packed, tar: tar.NewWriter(packed), now: now}
}

// add writes one file.
func (a *archive) add(name string, content []byte) error {
	header := &tar.Header{Typeflag: tar.TypeReg, Name: path.Join(folder, name), Size: int64(len(content)), Mode: 0o600,
		ModTime: a.now}
	if err := a.tar.WriteHeader(header); err != nil {
		return fmt.Errorf("writing the bundle: %s: %w", name, err)
	}
	if _, err := a.tar.Write(content); err != nil {
		return fmt.Errorf("writing the bundle: %s: %w", name, err)
	}
	return nil
}

// close completes the archive.
func (a *archive) close() error {
	if err := errors.Join(a.tar.Close(), a.packed.Close()); err != nil {
		return fmt.Errorf("completing the bundle: %w", err)
	}
	return nil
}
