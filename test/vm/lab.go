// Package vm runs parts of the project on machines as users have them: Debian with systemd and cgroup version 2,
// emulated in software, so that it works on any machine with Debian's packages. A machine is reached over a network
// between it and its emulator, which leads nowhere else; several have a private one among them.
package vm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// payloadMount is where a machine has what a test brings: tests of the daemons' packages, and the program that answers.
const payloadMount = "/opt/keelson"

// buildTimeout bounds the build of root and payload.
const buildTimeout = 10 * time.Minute

// lab is what all machines of a test run start from.
type lab struct {
	root    Root
	payload string
}

// setUp is done by the first test that starts a machine.
var setUp = sync.OnceValues(func() (*lab, error) {
	ctx, cancel := context.WithTimeout(context.Background(), buildTimeout)
	defer cancel()
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, fmt.Errorf("finding the folder of the machines' root: %w", err)
	}
	cache = filepath.Join(cache, "keelson", "vm")
	root, err := BuildRoot(ctx, cache)
	if err != nil {
		return nil, err
	}
	removeLeft()
	dir, err := tempDir()
	if err != nil {
		return nil, err
	}
	cleanups = append(cleanups, func() error { return os.RemoveAll(dir) })
	payload, err := buildPayload(ctx, dir)
	return &lab{root: root, payload: payload}, err
})

// cleanups are done when all tests have ended.
var cleanups []func() error

// Main is the TestMain of a package whose tests start machines.
func Main(m *testing.M) {
	code := m.Run()
	for _, cleanup := range cleanups {
		if err := cleanup(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// open skips the test where machines cannot be had.
func open(t testing.TB) *lab {
	t.Helper()
	l, err := setUp()
	var unavailable *UnavailableError
	if errors.As(err, &unavailable) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// buildPayload makes the disk that every machine reads from.
func buildPayload(ctx context.Context, dir string) (string, error) {
	tree := filepath.Join(dir, "payload")
	if err := os.MkdirAll(tree, 0o755); err != nil {
		return "", fmt.Errorf("making the payload's folder: %w", err)
	}
	for _, build := range [][]string{
		{"build", "-o", filepath.Join(tree, "guest"), "keelson.dev/test/vm/guest"},
		{"test", "-c", "-o", filepath.Join(tree, "cgroup.test"), "keelson.dev/services/nodeagent/internal/cgroup"},
	} {
		if out, err := output(ctx, "go", build...); err != nil {
			return "", fmt.Errorf("building what runs inside the machines: %w\n%s", err, out)
		}
	}
	disk := filepath.Join(dir, "payload.disk")
	if err := makeDisk(ctx, tree, disk, "512M"); err != nil {
		return "", err
	}
	return disk, os.RemoveAll(tree)
}

// tempPrefix begins the names of all temporary folders; the process that has made one follows.
const tempPrefix = "keelvm-"

// tempDir makes a temporary folder whose sockets' paths stay below the kernel's limit of 108 bytes.
func tempDir() (string, error) {
	dir, err := os.MkdirTemp("", fmt.Sprintf("%s%d-", tempPrefix, os.Getpid()))
	if err != nil {
		return "", fmt.Errorf("making a folder for machines: %w", err)
	}
	return dir, nil
}

// testDir is one that ends with the test.
func testDir(t testing.TB) string {
	t.Helper()
	dir, err := tempDir()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// removeLeft removes the folders of tests that were killed: the kernel has ended their emulators, but disks are large.
func removeLeft() {
	dirs, err := filepath.Glob(filepath.Join(os.TempDir(), tempPrefix+"*-*"))
	if err != nil {
		return
	}
	for _, dir := range dirs {
		owner, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), tempPrefix), "-")
		if _, err := os.Stat(filepath.Join("/proc", owner)); os.IsNotExist(err) {
			_ = os.RemoveAll(dir)
		}
	}
}
