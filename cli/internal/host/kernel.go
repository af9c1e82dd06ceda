package host

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"keelson.dev/cli/internal/plan"
)

// Modules returns what is known about kernel modules, and loads none.
func Modules(names []string) map[string]plan.ModuleState {
	lists := kernelLists()
	fileSystems, _ := os.ReadFile("/proc/filesystems") // a missing file names none
	found := map[string]plan.ModuleState{}
	for _, name := range names {
		loaded := exists("/sys/module/"+name) || slices.Contains(strings.Fields(string(fileSystems)), name)
		found[name] = plan.FindModule(name, loaded, lists)
	}
	return found
}

// kernelLists reads the lists that exist: a container or a small machine may have none.
func kernelLists() plan.KernelLists {
	var lists plan.KernelLists
	var system unix.Utsname
	if unix.Uname(&system) == nil {
		dir := filepath.Join("/lib/modules", unix.ByteSliceToString(system.Release[:]))
		builtIn, _ := os.ReadFile(filepath.Join(dir, "modules.builtin"))
		loadable, _ := os.ReadFile(filepath.Join(dir, "modules.dep"))
		lists.BuiltIn, lists.Loadable = string(builtIn), string(loadable)
	}
	if packed, err := os.Open("/proc/config.gz"); err == nil {
		defer packed.Close()
		if reader, err := gzip.NewReader(packed); err == nil {
			options, _ := io.ReadAll(reader)
			lists.Options = string(options)
		}
	}
	return lists
}

// Modprobe reports whether the machine has modprobe.
func Modprobe() bool { return exists("/sbin/modprobe") }

// Clock asks the kernel whether the machine's clock is synchronised.
func Clock() plan.ClockState {
	var asked unix.Timex // without modes nothing is set
	if _, err := unix.Adjtimex(&asked); err != nil {
		return plan.ClockUnknown
	}
	if asked.Status&unix.STA_UNSYNC != 0 {
		return plan.ClockFree
	}
	return plan.ClockKept
}

// Swap lists the kernel's swap devices and files.
func Swap() []string {
	text, _ := os.ReadFile("/proc/swaps") // a kernel without swap has no such file
	return plan.SwapDevices(string(text))
}

// Disk returns the space on the file system of a folder, which need not exist yet.
func Disk(dir string) (plan.Disk, error) {
	disk := plan.Disk{Path: dir}
	for at := dir; ; at = filepath.Dir(at) {
		var found unix.Statfs_t
		err := unix.Statfs(at, &found)
		if errors.Is(err, fs.ErrNotExist) && at != "/" {
			continue
		}
		if err != nil {
			return disk, fmt.Errorf("looking at the disk of %s: %w", dir, err)
		}
		size := uint64(found.Bsize)
		disk.Bytes, disk.BytesFree = found.Blocks*size, found.Bavail*size
		disk.Inodes, disk.InodesFree = found.Files, found.Ffree
		var folder unix.Stat_t
		if err := unix.Stat(at, &folder); err != nil {
			return disk, fmt.Errorf("looking at the disk of %s: %w", dir, err)
		}
		disk.Device = folder.Dev
		return disk, nil
	}
}
