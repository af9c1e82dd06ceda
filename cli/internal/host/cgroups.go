package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"keelson.dev/cli/internal/plan"
)

// Cgroups examines the machine's cgroups.
func Cgroups() (plan.Cgroups, error) {
	var mount unix.Statfs_t
	if err := unix.Statfs(cgroupMount, &mount); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return plan.Cgroups{}, nil
		}
		return plan.Cgroups{}, fmt.Errorf("looking at the cgroups: %w", err)
	}
	found := plan.Cgroups{Unified: mount.Type == unix.CGROUP2_SUPER_MAGIC}
	file := "/proc/cgroups"
	if found.Unified {
		file = cgroupMount + "/cgroup.controllers"
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return found, fmt.Errorf("reading the cgroup controllers: %w", err)
	}
	found.Controllers = plan.CgroupControllers(found.Unified, string(text))
	// Version 1 has a folder, or a link, for each controller.
	found.Mounted = found.Unified || exists(cgroupMount+"/cpu")
	return found, nil
}
