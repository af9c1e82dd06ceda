package support

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"keelson.dev/kit/subprocess"
)

// machineFiles are what the kernel and the distribution say of the machine, by the names that they get in a bundle.
var machineFiles = []struct{ name, path string }{
	{"os-release", "/etc/os-release"},
	{"kernel", "/proc/version"},
	{"cmdline", "/proc/cmdline"},
	{"cpuinfo", "/proc/cpuinfo"},
	{"meminfo", "/proc/meminfo"},
	{"loadavg", "/proc/loadavg"},
	{"uptime", "/proc/uptime"},
	{"modules", "/proc/modules"},
	{"mountinfo", "/proc/self/mountinfo"},
	{"cgroups", "/proc/cgroups"},
	{"routes", "/proc/net/route"},
	{"interfaces", "/proc/net/dev"},
	{"sockets", "/proc/net/sockstat"},
}

// ofMachine are the files of the machine that the mesh in a folder runs on.
func ofMachine(dataDir string) []source {
	sources := []source{{"machine/disk", func(context.Context) ([]byte, string, error) {
		text, err := diskSpace(dataDir)
		return []byte(text), "", err
	}}}
	for _, f := range machineFiles {
		sources = append(sources, source{"machine/" + f.name, func(context.Context) ([]byte, string, error) {
			return head(f.path)
		}})
	}
	return sources
}

// diskSpace describes the file system that a folder is on.
func diskSpace(folder string) (string, error) {
	var disk unix.Statfs_t
	if err := unix.Statfs(folder, &disk); err != nil {
		return "", fmt.Errorf("asking for the disk space of %s: %w", folder, err)
	}
	block := uint64(disk.Bsize)
	return fmt.Sprintf("%s\nbytes: %d, available %d\ninodes: %d, free %d\n", folder, disk.Blocks*block,
		disk.Bavail*block, disk.Files, disk.Ffree), nil
}

// head reads the beginning of a file of the kernel or the distribution. One that is not there says so: a kernel without
// modules has no list of them.
func head(path string) (content []byte, note string, err error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Appendf(nil, "%s does not exist\n", path), "", nil
	}
	if err != nil {
		return nil, "", err
	}
	defer f.Close()
	content, err = io.ReadAll(io.LimitReader(f, sizeLimit))
	return content, "", err
}

// tail reads the end of a log, from the beginning of a line on.
func tail(path string, limit int64) (text, note string, err error) {
	content, begin, err := subprocess.End(path, 0, limit)
	if err != nil {
		return "", "", err
	}
	text = string(content)
	if begin > 0 {
		_, text, _ = strings.Cut(text, "\n")
		note = fmt.Sprintf("the last %d of %d bytes", len(text), begin+int64(len(content)))
	}
	return text, note, nil
}
