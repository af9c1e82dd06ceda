package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"keelson.dev/cli/internal/plan"
)

// cgroupMount is the folder with the mounts of the version 1 cgroup hierarchies, or the mount point of version 2.
const cgroupMount = "/sys/fs/cgroup"

// UnmountBelow unmounts everything below a folder.
func UnmountBelow(dir string) error {
	table, err := os.ReadFile("/proc/thread-self/mountinfo")
	if err != nil {
		return fmt.Errorf("reading the mounts: %w", err)
	}
	var failed error
	for _, point := range plan.MountsBelow(string(table), dir) {
		if err := unix.Unmount(point, unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) &&
			!errors.Is(err, fs.ErrNotExist) {
			failed = errors.Join(failed, fmt.Errorf("unmounting %s: %w", point, err))
		}
	}
	return failed
}

// RemoveCgroups kills the processes below a cgroup, in all hierarchies of the machine, and removes it.
func RemoveCgroups(ctx context.Context, cgroup string) error {
	roots := []string{cgroupMount + cgroup}
	hierarchies, err := filepath.Glob(cgroupMount + "/*" + cgroup)
	if err != nil {
		return fmt.Errorf("listing the cgroups: %w", err)
	}
	var failed error
	for _, root := range append(roots, hierarchies...) {
		if exists(root) {
			failed = errors.Join(failed, removeTree(ctx, root))
		}
	}
	return failed
}

// removeTree retries for a while: a killed process leaves its cgroup a moment later, and hundreds of processes on
// a busy machine take longer.
func removeTree(ctx context.Context, root string) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := killAndRemove(root)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("removing the cgroup %s: %w", root, err)
		case <-ticker.C:
		}
	}
}

func killAndRemove(root string) error {
	var dirs []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && entry.IsDir() {
			dirs = append(dirs, path)
		}
		return err
	})
	if err != nil {
		return err
	}
	var failed error
	for _, dir := range slices.Backward(dirs) {
		killIn(dir)
		if err := unix.Rmdir(dir); err != nil && !errors.Is(err, unix.ENOENT) {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", dir, err))
		}
	}
	return failed
}

func killIn(dir string) {
	content, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil {
		return // the cgroup is gone
	}
	for _, line := range strings.Fields(string(content)) {
		if pid, err := strconv.Atoi(line); err == nil && pid > 1 {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it is fine if the process has ended
		}
	}
}

// KillByArgument kills the processes of a program that have an argument, and returns their number. It is for
// containerd's shims, which outlive their containerd and have its socket as an argument.
func KillByArgument(program, argument string) int {
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return 0
	}
	killed := 0
	for _, file := range lines {
		content, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		words := strings.Split(strings.TrimRight(string(content), "\x00"), "\x00")
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err == nil && filepath.Base(words[0]) == program && slices.Contains(words[1:], argument) &&
			syscall.Kill(pid, syscall.SIGKILL) == nil {
			killed++
		}
	}
	return killed
}
