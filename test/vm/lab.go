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

	"keelson.dev/test/scenario"
)

// payloadMount is where a machine has what a test brings: tests of the daemons' packages, and the program that answers.
const payloadMount = "/opt/keelson"

// buildTimeout bounds the build of root and payload.
const buildTimeout = 10 * time.Minute

// lab is what all machines of a test run start from.
type lab struct {
	root Root
	dir  string
	// payload is the disk of most machines, meshPayload that of those which run a mesh, packagePayload that of those
	// which install it before.
	payload, meshPayload, packagePayload func() (string, error)
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
	return &lab{root: root, dir: dir,
		payload: sync.OnceValues(func() (string, error) {
			return buildPayload(dir, "payload", "512M", packageTests)
		}),
		meshPayload: sync.OnceValues(func() (string, error) {
			return buildPayload(dir, "mesh", "2G", programs)
		}),
		packagePayload: sync.OnceValues(func() (string, error) {
			return buildPayload(dir, "package", "512M", debianPackage)
		}),
	}, nil
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

// buildPayload makes a disk that machines read from: the program that answers, and what else is put beside it.
func buildPayload(dir, name, size string, beside func(ctx context.Context, tree string) error) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), buildTimeout)
	defer cancel()
	tree := filepath.Join(dir, name)
	if err := os.MkdirAll(tree, 0o755); err != nil {
		return "", fmt.Errorf("making the payload's folder: %w", err)
	}
	if err := goBuild(ctx, "build", "-o", filepath.Join(tree, "guest"), "keelson.dev/test/vm/guest"); err != nil {
		return "", err
	}
	if err := beside(ctx, tree); err != nil {
		return "", err
	}
	disk := filepath.Join(dir, name+".disk")
	if err := makeDisk(ctx, tree, disk, size); err != nil {
		return "", err
	}
	return disk, os.RemoveAll(tree)
}

// packageTests puts the tests of daemons' packages that need such a machine beside the program.
func packageTests(ctx context.Context, tree string) error {
	return goBuild(ctx, "test", "-c", "-o", filepath.Join(tree, "cgroup.test"),
		"keelson.dev/services/nodeagent/internal/cgroup")
}

func goBuild(ctx context.Context, args ...string) error {
	if out, err := output(ctx, "go", args...); err != nil {
		return fmt.Errorf("building what runs inside the machines: %w\n%s", err, out)
	}
	return nil
}

// meshPrograms and meshImages are what a mesh on a machine needs of what make has built.
var (
	meshPrograms = []string{"keel", "kubectl", "keelson-apiserver", "keelson-scheduler", "keelson-workload-controllers",
		"keelson-podgc", "keelson-nodeagent", "containerd", "containerd-shim-runc-v2", "ctr", "runc", "cni"}
	meshImages = []string{"pause.tar", "coredns.tar", "hello-1.tar"}
)

// programs puts a mesh's programs and images beside the program.
func programs(ctx context.Context, tree string) error {
	images := filepath.Join(tree, "bin", "images")
	if err := os.MkdirAll(images, 0o755); err != nil {
		return fmt.Errorf("making the folder of the programs: %w", err)
	}
	for from, to := range map[string]string{"": filepath.Dir(images), "images": images} {
		names := meshPrograms
		if from != "" {
			names = meshImages
		}
		for _, name := range names {
			file := filepath.Join(scenario.BinDir(), from, name)
			if out, err := output(ctx, "cp", "-RL", file, to); err != nil {
				return fmt.Errorf("taking %s, which make build images makes: %w\n%s", file, err, out)
			}
		}
	}
	return nil
}

// debianPackage puts the package for Debian beside the program.
func debianPackage(ctx context.Context, tree string) error {
	found, err := filepath.Glob(filepath.Join(scenario.BinDir(), "packages", "*.deb"))
	if err != nil || len(found) != 1 {
		return fmt.Errorf("taking the package, which make packages makes: there are %d, %w", len(found), err)
	}
	if out, err := output(ctx, "cp", found[0], filepath.Join(tree, "keelson.deb")); err != nil {
		return fmt.Errorf("taking %s: %w\n%s", found[0], err, out)
	}
	return nil
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
