package stats

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// devices are the machine's disks by their numbers, which stay the same until a reboot.
type devices struct {
	sys string

	mu    sync.Mutex // guards names
	names map[[2]uint64]string
}

func newDevices(sys string) *devices { return &devices{sys: sys, names: map[[2]uint64]string{}} }

// name returns the name of a disk's device file, for example /dev/vda; its numbers if the machine does not report
// the name.
func (d *devices) name(major, minor uint64) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	key := [2]uint64{major, minor}
	if name, known := d.names[key]; known {
		return name
	}
	name := fmt.Sprintf("%d:%d", major, minor)
	event, err := os.ReadFile(filepath.Join(d.sys, "dev/block", name, "uevent"))
	if err != nil {
		return name // it may appear later
	}
	for _, line := range strings.Split(string(event), "\n") {
		if file, ok := strings.CutPrefix(line, "DEVNAME="); ok {
			name = "/dev/" + file
		}
	}
	d.names[key] = name
	return name
}

// of returns the disk that holds a folder; empty for a missing folder.
func (d *devices) of(dir string) string {
	var stat unix.Stat_t
	if err := unix.Stat(dir, &stat); err != nil {
		return ""
	}
	return d.name(uint64(unix.Major(stat.Dev)), uint64(unix.Minor(stat.Dev)))
}
