// Package mountfake is a volume.Mounter in memory, for tests of code that uses mounts.
package mountfake

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
)

// Mounter records mounts. The zero value is ready.
type Mounter struct {
	mu      sync.Mutex
	mounts  []Mount
	failing map[string]error
}

// Mount is one mount: what it shows, and how.
type Mount struct{ Target, Kind, Source, Options string }

// Fail makes the next operations on target fail with err, until err is nil.
func (m *Mounter) Fail(target string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.failing == nil {
		m.failing = map[string]error{}
	}
	m.failing[target] = err
}

// Mounts returns all mounts, oldest first.
func (m *Mounter) Mounts() []Mount {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.mounts)
}

func (m *Mounter) add(mount Mount) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.failing[mount.Target]; err != nil {
		return err
	}
	if _, err := os.Lstat(mount.Target); err != nil {
		return fmt.Errorf("mounting at %s: %w", mount.Target, err)
	}
	m.mounts = append(m.mounts, mount)
	return nil
}

// Tmpfs implements volume.Mounter.
func (m *Mounter) Tmpfs(target string, size int64, mode uint32, gid int64) error {
	return m.add(Mount{Target: target, Kind: "tmpfs", Options: fmt.Sprintf("size=%d mode=%o gid=%d", size, mode, gid)})
}

// HugePages implements volume.Mounter.
func (m *Mounter) HugePages(target string, pageSize, size int64, mode uint32, gid int64) error {
	return m.add(Mount{Target: target, Kind: "hugetlbfs", Options: fmt.Sprintf("pagesize=%d size=%d mode=%o gid=%d",
		pageSize, size, mode, gid)})
}

// Bind implements volume.Mounter.
func (m *Mounter) Bind(source *os.File, target string) error {
	path, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", source.Fd()))
	if err != nil {
		return err
	}
	return m.add(Mount{Target: target, Kind: "bind", Source: path})
}

// Device makes the file at target a block device until it is unmounted.
func (m *Mounter) Device(target string) error { return m.add(Mount{Target: target, Kind: kindDevice}) }

// kindDevice is the Kind of a device.
const kindDevice = "device"

// IsDevice implements volume.Mounter.
func (m *Mounter) IsDevice(target string) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.ContainsFunc(m.mounts, func(mount Mount) bool {
		return mount.Target == target && mount.Kind == kindDevice
	}), nil
}

// IsMount implements volume.Mounter.
func (m *Mounter) IsMount(target string) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.ContainsFunc(m.mounts, func(mount Mount) bool { return mount.Target == target }), nil
}

// Unmount implements volume.Mounter.
func (m *Mounter) Unmount(target string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.failing[target]; err != nil {
		return err
	}
	for i := len(m.mounts) - 1; i >= 0; i-- {
		if m.mounts[i].Target == target {
			m.mounts = slices.Delete(m.mounts, i, i+1)
			return nil
		}
	}
	return nil
}

// Under implements volume.Mounter.
func (m *Mounter) Under(dir string) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var targets []string
	for _, mount := range slices.Backward(m.mounts) {
		if mount.Target == dir || strings.HasPrefix(mount.Target, dir+"/") {
			targets = append(targets, mount.Target)
		}
	}
	slices.SortStableFunc(targets, func(a, b string) int { return strings.Count(b, "/") - strings.Count(a, "/") })
	return targets, nil
}
