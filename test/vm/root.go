package vm

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// release is the Debian that the machines run, packages what they have beyond its smallest form. Pods bring everything
// else, and the project's programs need nothing of it.
const release = "bookworm"

var packages = []string{
	"systemd", "systemd-sysv", "dbus", "udev", "kmod", "iproute2", "procps", "initramfs-tools", "zstd",
	"linux-image-cloud-amd64",
}

// furnish runs inside the root file system before it becomes a disk. The masked units would only take time.
const furnish = `set -e
systemctl enable systemd-networkd keelson-guest
systemctl mask apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer fstrim.timer \
  systemd-networkd-wait-online.service getty@tty1.service
passwd -d root
: >/etc/machine-id
update-initramfs -u
rm -rf /var/cache/apt /var/lib/apt/lists /usr/share/doc /usr/share/man /usr/share/locale
`

// diskSize is that of a machine's disk; what nothing was written to takes no room outside.
const diskSize = "6G"

// files are laid over the root.
//
//go:embed files
var files embed.FS

// UnavailableError says what of Debian's cannot be had here.
type UnavailableError struct{ Reason string }

// Error is one sentence.
func (e *UnavailableError) Error() string { return "no machine can be had here: " + e.Reason }

// Root is what every machine starts from.
type Root struct{ Kernel, Initrd, Image string }

// BuildRoot returns the root, which is built once for each state of its inputs and kept in the folder. Other processes
// wait meanwhile.
func BuildRoot(ctx context.Context, cache string) (Root, error) {
	if err := checkPrograms(); err != nil {
		return Root{}, err
	}
	key, err := rootKey()
	if err != nil {
		return Root{}, err
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return Root{}, fmt.Errorf("making the folder of the machines' root: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(cache, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return Root{}, fmt.Errorf("opening the lock of the machines' root: %w", err)
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return Root{}, fmt.Errorf("waiting for another build of the machines' root: %w", err)
	}
	dir := filepath.Join(cache, key)
	root := Root{Kernel: filepath.Join(dir, "vmlinuz"), Initrd: filepath.Join(dir, "initrd"),
		Image: filepath.Join(dir, "disk")}
	if _, err := os.Stat(dir); err == nil {
		return root, nil
	}
	if err := buildInto(ctx, cache, dir); err != nil {
		return Root{}, err
	}
	return root, nil
}

// rootKey changes with everything that the root is made of but Debian's own updates.
func rootKey() (string, error) {
	sum := sha256.New()
	fmt.Fprintln(sum, release, packages, furnish, diskSize)
	err := fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := files.ReadFile(path)
		fmt.Fprintf(sum, "%s %d\n%s", path, len(content), content)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("reading the files of the root: %w", err)
	}
	return hex.EncodeToString(sum.Sum(nil)[:8]), nil
}

// buildInto makes the root beside the folder and moves it there when it is whole; roots of other inputs go.
func buildInto(ctx context.Context, cache, dir string) error {
	old, err := filepath.Glob(filepath.Join(cache, "*", "disk"))
	if err != nil {
		return fmt.Errorf("listing former roots: %w", err)
	}
	half, err := filepath.Glob(filepath.Join(cache, "new-*"))
	if err != nil {
		return fmt.Errorf("listing half-built roots: %w", err)
	}
	for _, left := range slices.Concat(old, half) {
		if filepath.Base(left) == "disk" {
			left = filepath.Dir(left)
		}
		if err := os.RemoveAll(left); err != nil {
			return fmt.Errorf("removing a former root: %w", err)
		}
	}
	fresh, err := os.MkdirTemp(cache, "new-")
	if err != nil {
		return fmt.Errorf("making a folder for the root: %w", err)
	}
	defer func() { _ = os.RemoveAll(fresh) }()
	tree := filepath.Join(fresh, "tree")
	if out, err := output(ctx, "debootstrap", "--variant=minbase", "--include="+strings.Join(packages, ","), release,
		tree); err != nil {
		return &UnavailableError{Reason: fmt.Sprintf("debootstrap got no Debian %s: %s", release, lastLine(out))}
	}
	if err := finish(ctx, tree, fresh); err != nil {
		return err
	}
	if err := os.Rename(fresh, dir); err != nil {
		return fmt.Errorf("keeping the root: %w", err)
	}
	return nil
}

// finish lays our files over the tree and turns it into a disk, its kernel and its initrd.
func finish(ctx context.Context, tree, dir string) error {
	ours, err := fs.Sub(files, "files")
	if err != nil {
		return fmt.Errorf("opening the files of the root: %w", err)
	}
	err = fs.WalkDir(ours, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return errors.Join(err, os.MkdirAll(filepath.Join(tree, path), 0o755))
		}
		content, err := fs.ReadFile(ours, path)
		return errors.Join(err, os.WriteFile(filepath.Join(tree, path), content, 0o644))
	})
	if err != nil {
		return fmt.Errorf("laying files over the root: %w", err)
	}
	if out, err := output(ctx, "chroot", tree, "/bin/sh", "-c", furnish); err != nil {
		return fmt.Errorf("furnishing the root: %w\n%s", err, out)
	}
	for name, pattern := range map[string]string{"vmlinuz": "vmlinuz-*", "initrd": "initrd.img-*"} {
		found, err := filepath.Glob(filepath.Join(tree, "boot", pattern))
		if err != nil || len(found) != 1 {
			return fmt.Errorf("finding the root's %s: %d files, %w", name, len(found), err)
		}
		if err := os.Rename(found[0], filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("taking the root's %s: %w", name, err)
		}
	}
	if err := os.MkdirAll(filepath.Join(tree, payloadMount), 0o755); err != nil {
		return fmt.Errorf("making the root's mount point: %w", err)
	}
	if err := makeDisk(ctx, tree, filepath.Join(dir, "disk"), diskSize); err != nil {
		return err
	}
	return os.RemoveAll(tree)
}

// makeDisk makes a disk of a folder, without mounting anything.
func makeDisk(ctx context.Context, folder, image, size string) error {
	if out, err := output(ctx, "mke2fs", "-q", "-t", "ext4", "-E", "lazy_itable_init=1", "-d", folder, image,
		size); err != nil {
		return fmt.Errorf("making the disk %s: %w\n%s", filepath.Base(image), err, out)
	}
	return nil
}

// checkPrograms says what is missing of what Debian has, some of it where only root's PATH leads.
func checkPrograms() error {
	if err := os.Setenv("PATH", os.Getenv("PATH")+":/usr/sbin:/sbin"); err != nil {
		return fmt.Errorf("extending the PATH: %w", err)
	}
	if os.Geteuid() != 0 {
		return &UnavailableError{Reason: "building a machine's root needs root"}
	}
	for _, program := range []string{emulator, "debootstrap", "mke2fs", "debugfs", "chroot"} {
		if _, err := exec.LookPath(program); err != nil {
			return &UnavailableError{Reason: program + " is missing; make vm-tools installs it where there is apt"}
		}
	}
	return nil
}

// output runs a program and returns all that it printed.
func output(ctx context.Context, program string, args ...string) (string, error) {
	var out bytes.Buffer
	command := exec.CommandContext(ctx, program, args...)
	command.Stdout, command.Stderr = &out, &out
	command.Env = append(os.Environ(), "LC_ALL=C", "DEBIAN_FRONTEND=noninteractive")
	err := command.Run()
	return out.String(), err
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}
