package node

import (
	"fmt"
	"net"
	"os"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
)

// Machine reads what a machine says of itself into facts: its size and its system. dir lies on the file system that
// Pods use.
func Machine(f *Facts, dir string) error {
	meminfo, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return fmt.Errorf("reading the machine's memory: %w", err)
	}
	f.Memory = memTotal(string(meminfo))
	f.MilliCPU = int64(runtime.NumCPU()) * 1000
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil {
		return fmt.Errorf("looking at the file system of %s: %w", dir, err)
	}
	f.Storage = int64(fs.Blocks) * fs.Bsize
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return fmt.Errorf("asking for the kernel's version: %w", err)
	}
	release, _ := os.ReadFile("/etc/os-release") // a system without it is just "Linux"
	f.Info = corev1.NodeSystemInfo{
		MachineID:       content("/etc/machine-id"),
		SystemUUID:      content("/sys/class/dmi/id/product_uuid"),
		BootID:          content("/proc/sys/kernel/random/boot_id"),
		KernelVersion:   unix.ByteSliceToString(name.Release[:]),
		OSImage:         osImage(string(release)),
		OperatingSystem: runtime.GOOS,
		Architecture:    runtime.GOARCH,
	}
	return nil
}

// content returns the text of a file that not every machine has.
func content(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

// DefaultIP returns the address from which the machine reaches others, or its loopback address if it has none.
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
