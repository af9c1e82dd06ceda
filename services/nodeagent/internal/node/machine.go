package node

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
)

// Machine reads the properties of a machine into facts: its size and its system. dir is on the file system that
// Pods use.
func Machine(f *Facts, dir string) error {
	meminfo, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return fmt.Errorf("reading the machine's memory: %w", err)
	}
	f.Memory = memTotal(string(meminfo))
	f.MilliCPU = int64(runtime.NumCPU()) * 1000
	var disk syscall.Statfs_t
	if err := syscall.Statfs(dir, &disk); err != nil {
		return fmt.Errorf("looking at the file system of %s: %w", dir, err)
	}
	f.Storage = int64(disk.Blocks) * disk.Bsize
	if f.MaxPIDs, err = maxPIDs(); err != nil {
		return err
	}
	if f.HugePages, err = hugePages("/sys/kernel/mm/hugepages"); err != nil {
		return err
	}
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return fmt.Errorf("asking for the kernel's version: %w", err)
	}
	release, _ := os.ReadFile("/etc/os-release") // without it, a system is just "Linux"
	f.Info = corev1.NodeSystemInfo{
		MachineID:       content("/etc/machine-id"),
		SystemUUID:      content("/sys/class/dmi/id/product_uuid"),
		BootID:          content("/proc/sys/kernel/random/boot_id"),
		KernelVersion:   unix.ByteSliceToString(name.Release[:]),
		OSImage:         osImage(string(release)),
		OperatingSystem: runtime.GOOS,
		Architecture:    runtime.GOARCH,
		Swap:            swapOf(string(meminfo)),
	}
	return nil
}

// maxPIDs returns the maximum number of processes and threads: the lesser of the kernel's two bounds.
func maxPIDs() (int64, error) {
	least := int64(math.MaxInt64)
	for _, file := range []string{"/proc/sys/kernel/pid_max", "/proc/sys/kernel/threads-max"} {
		data, err := os.ReadFile(file)
		if err != nil {
			return 0, fmt.Errorf("reading how many processes there may be: %w", err)
		}
		bound, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("reading how many processes there may be: %s: %w", file, err)
		}
		least = min(least, bound)
	}
	return least, nil
}

// hugePages reads how much memory is reserved as huge pages, by page size. dir has one folder for each size,
// hugepages-2048kB for example; a kernel without huge pages has no dir.
func hugePages(dir string) (map[int64]int64, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	out := map[int64]int64{}
	for _, entry := range entries {
		var kib, pages int64
		if _, err := fmt.Sscanf(entry.Name(), "hugepages-%dkB", &kib); err != nil {
			continue
		}
		file := filepath.Join(dir, entry.Name(), "nr_hugepages")
		data, err := os.ReadFile(file)
		if err == nil {
			pages, err = strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
		}
		if err != nil {
			return nil, fmt.Errorf("reading how many huge pages there are: %s: %w", file, err)
		}
		out[kib<<10] = pages * kib << 10
	}
	if err != nil {
		return nil, fmt.Errorf("reading which huge pages there are: %w", err)
	}
	return out, nil
}

// content returns the text of a file that may be missing on a machine.
func content(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

// DefaultIP returns the first address from which the machine reaches others, or its loopback address if it has
// none.
func DefaultIP() string {
	addresses, err := net.InterfaceAddrs()
	if err == nil {
		for _, address := range addresses {
			if ip, ok := address.(*net.IPNet); ok && ip.IP.IsGlobalUnicast() && ip.IP.To4() != nil {
				return ip.IP.String()
			}
		}
	}
	return "127.0.0.1"
}
