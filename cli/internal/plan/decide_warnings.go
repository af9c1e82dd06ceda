package plan

import (
	"fmt"
	"strings"
)

// ClockState says whether a machine's clock is synchronised.
type ClockState string

const (
	// ClockKept is synchronised according to the kernel.
	ClockKept ClockState = "kept"
	// ClockFree is not synchronised.
	ClockFree ClockState = "free"
	// ClockUnknown means that the kernel does not report the state here.
	ClockUnknown ClockState = "unknown"
)

// Disk describes the file system of a folder, mostly of the data directory. The zero Disk has not been examined.
type Disk struct {
	// Path is the folder.
	Path string
	// Device is the kernel's number of the file system.
	Device uint64
	// Bytes and Inodes are the totals, BytesFree and InodesFree what is left. A file system may not count inodes.
	Bytes, BytesFree, Inodes, InodesFree uint64
	// Archives is the size of the image archives that no node has imported yet.
	Archives uint64
	// Shared is set if the node lets its disk become nearly full.
	Shared bool
}

// storeRoom is the space that the store allocates at its first start for its log.
const storeRoom = 256 << 20

// needed returns how much a first run writes: each archive is stored and also unpacked.
func (d Disk) needed() uint64 {
	if d.Archives == 0 {
		return 0
	}
	return 2*d.Archives + storeRoom
}

// Problems lists the reasons why a first run would fail.
func (d Disk) Problems() []string {
	if d.Bytes == 0 || d.BytesFree >= d.needed() {
		return nil
	}
	return []string{fmt.Sprintf("the disk of %s has %d MiB left, and the images and the store need %d MiB: make room, "+
		"or choose another disk by --data-dir", d.Path, d.BytesFree>>20, d.needed()>>20)}
}

// Below these free shares, in percent, a node takes no Pods and evicts some: the defaults of the nodeagent's
// --eviction-hard, and sharedDisk.
const (
	imagesShare = 15
	sharedShare = 1
	inodesShare = 5
)

func (d Disk) warnings() (warnings []string) {
	share := uint64(imagesShare)
	if d.Shared {
		share = sharedShare
	}
	if d.Bytes > 0 && d.BytesFree < d.Bytes/100*share {
		warnings = append(
			warnings,
			fmt.Sprintf("the disk of %s has %d%% left, and with less than %d%% a node takes no "+
				"Pods and ends some (DiskPressure): make room", d.Path, d.BytesFree*100/d.Bytes, share),
		)
	}
	if d.Inodes > 0 && !d.Shared && d.InodesFree*100 < d.Inodes*inodesShare {
		warnings = append(
			warnings,
			fmt.Sprintf("the disk of %s has room for %d more files, and with less than %d%% of "+
				"its inodes a node takes no Pods and ends some (DiskPressure): remove files", d.Path, d.InodesFree,
				inodesShare),
		)
	}
	return warnings
}

// MachineWarnings lists, in one sentence each, the conditions of a machine under which a mesh runs, but not well.
func MachineWarnings(m Machine) []string {
	var warnings []string
	if m.Clock == ClockFree {
		warnings = append(
			warnings,
			"nothing keeps this machine's clock (the kernel calls it unsynchronised), by which "+
				"certificates and tokens are judged: run chrony, ntpd or systemd-timesyncd",
		)
	}
	if len(m.Swap) > 0 {
		effect := "Pods have none of it by default, but the daemons may be slowed"
		if !m.Cgroups.Unified {
			effect = "on cgroups of version 1 Pods without a limit of memory are swapped out, and slowed"
		}
		warnings = append(warnings, fmt.Sprintf("this machine swaps to %s: %s, and a node with --fail-swap-on does "+
			"not start; swapoff -a ends it, and a line less in /etc/fstab", strings.Join(m.Swap, ", "), effect))
	}
	return append(warnings, m.Disk.warnings()...)
}

// SwapDevices reads the names in /proc/swaps.
func SwapDevices(text string) (devices []string) {
	first := true
	for line := range strings.Lines(text) {
		if fields := strings.Fields(line); !first && len(fields) > 0 {
			devices = append(devices, fields[0])
		}
		first = false
	}
	return devices
}
