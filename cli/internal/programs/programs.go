// Package programs examines the programs of daemons, and copies and moves them: a reader sees a program whole or not at
// all, also after a power failure. One keel at a time may use it on a folder.
package programs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// answerWithin is how long a program may take to say its version.
const answerWithin = 30 * time.Second

// Sum returns the SHA-256 of a file, in hex.
func Sum(file string) (string, error) {
	content, err := os.Open(file)
	if err != nil {
		return "", fmt.Errorf("reading a program: %w", err)
	}
	defer content.Close()
	digest := sha256.New()
	if _, err := io.Copy(digest, content); err != nil {
		return "", fmt.Errorf("reading a program: %w", err)
	}
	return hex.EncodeToString(digest.Sum(nil)), nil
}

// Version runs a program, and returns the version that it says for the daemon of that name.
func Version(ctx context.Context, file, name string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	run := exec.CommandContext(ctx, file, "--version")
	run.WaitDelay = time.Second
	out, err := run.Output()
	if err != nil {
		return "", fmt.Errorf("asking %s for its version: %w", file, err)
	}
	said := strings.TrimSpace(string(out))
	version, ok := strings.CutPrefix(said, name+" version ")
	if !ok || version == "" {
		return "", fmt.Errorf("%s is no %s: asked for its version it says %q", file, name, said)
	}
	return version, nil
}

// partSuffix marks a copy that is not complete.
const partSuffix = ".part"

// Copy copies a program, whose sum must be that.
func Copy(from, to, sum string) error {
	source, err := os.Open(from)
	if err != nil {
		return fmt.Errorf("reading a program: %w", err)
	}
	defer source.Close()
	part, err := os.OpenFile(to+partSuffix, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o755)
	if err != nil {
		return fmt.Errorf("writing a program: %w", err)
	}
	digest := sha256.New()
	_, err = io.Copy(io.MultiWriter(part, digest), source)
	// A umask may have taken bits away.
	err = errors.Join(err, part.Chmod(0o755), part.Sync(), part.Close())
	if got := hex.EncodeToString(digest.Sum(nil)); err == nil && got != sum {
		err = fmt.Errorf("%s has changed meanwhile", from)
	}
	if err != nil {
		return fmt.Errorf("copying %s to %s: %w", from, to, errors.Join(err, os.Remove(part.Name())))
	}
	return Move(part.Name(), to)
}

// Move puts a program in the place of another one on the same disk.
func Move(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return fmt.Errorf("moving a program: %w", err)
	}
	return SyncFolder(filepath.Dir(to))
}

// SyncFolder returns once the names in a folder would survive a power failure.
func SyncFolder(dir string) error {
	folder, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("opening a folder: %w", err)
	}
	defer folder.Close()
	if err := folder.Sync(); err != nil {
		return fmt.Errorf("writing the folder %s: %w", dir, err)
	}
	return nil
}

// Sums are the sums of files by the files' identities, so that a file is read once as long as it stays the same.
type Sums map[identity]string

// identity changes with a file's content.
type identity struct {
	device, inode uint64
	size          int64
	written       time.Time
}

// Of returns the sum of a file.
func (s Sums) Of(file string) (string, error) {
	info, err := os.Stat(file)
	if err != nil {
		return "", fmt.Errorf("reading a program: %w", err)
	}
	id := identity{size: info.Size(), written: info.ModTime()}
	if status, ok := info.Sys().(*syscall.Stat_t); ok {
		id.device, id.inode = status.Dev, status.Ino
	}
	if sum, ok := s[id]; ok {
		return sum, nil
	}
	sum, err := Sum(file)
	if err == nil {
		s[id] = sum
	}
	return sum, err
}
