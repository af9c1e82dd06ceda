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

// Modules looks what can be known of modules of the kernel, and loads none.
func Modules(names []string) map[string]plan.ModuleState {
	lists := kernelLists()
	fileSystems, _ := os.ReadFile("/proc/filesystems") // one that is not there names none
	found := map[string]plan.ModuleState{}
	for _, name := range names {
		loaded := exists("/sys/module/"+name) || slices.Contains(strings.Fields(string(fileSystems)), name)
		found[name] = plan.FindModule(name, loaded, lists)
	}
	return found
}

// kernelLists reads what there is: a kernel in a container or a small machine may have none.
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

// Modprobe tells whether there is what loads modules.
func Modprobe() bool { return exists("/sbin/modprobe") }

// Clock asks the kernel whether anything keeps the machine's clock.
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

// Swap lists what the kernel swaps to.
func Swap() []string {
	text, _ := os.ReadFile("/proc/swaps") // a kernel without swap has no such file
	return plan.SwapDevices(string(text))
}

// Disk looks at the room where a folder is, or is to be.
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
		return disk, nil
	}
}
