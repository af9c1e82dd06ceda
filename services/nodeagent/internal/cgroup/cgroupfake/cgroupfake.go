// Package cgroupfake is a cgroup.Kernel in memory, for tests of code that uses cgroups.
package cgroupfake

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"keelson.dev/services/nodeagent/internal/cgroup"
)

// Kernel records cgroups. Create it with New.
type Kernel struct {
	mode cgroup.Mode

	mu     sync.Mutex // guards the fields below
	groups map[string]cgroup.Limits
	usage  map[string]cgroup.Usage
	killed []string
}

// New returns an empty hierarchy of the given mode.
func New(mode cgroup.Mode) *Kernel {
	return &Kernel{mode: mode, groups: map[string]cgroup.Limits{}, usage: map[string]cgroup.Usage{}}
}

// Limits returns the limits of a cgroup; ok is false if it does not exist.
func (k *Kernel) Limits(path string) (limits cgroup.Limits, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	limits, ok = k.groups[path]
	return limits, ok
}

// SetUsage sets what Usage returns for a path.
func (k *Kernel) SetUsage(path string, usage cgroup.Usage) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.usage[path] = usage
}

// Mode implements cgroup.Kernel.
func (k *Kernel) Mode() cgroup.Mode { return k.mode }

// Ensure implements cgroup.Kernel.
func (k *Kernel) Ensure(name string, limits cgroup.Limits) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	for parent := path.Dir(name); parent != "/"; parent = path.Dir(parent) {
		if _, ok := k.groups[parent]; !ok {
			k.groups[parent] = cgroup.Limits{}
		}
	}
	k.groups[name] = limits
	return nil
}

// LimitsSwap implements cgroup.Kernel.
func (k *Kernel) LimitsSwap(string) bool { return k.mode == cgroup.Unified }

// Remove implements cgroup.Kernel.
func (k *Kernel) Remove(name string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	for group := range k.groups {
		if group == name || strings.HasPrefix(group, name+"/") {
			delete(k.groups, group)
		}
	}
	return nil
}

// Kill implements cgroup.Kernel.
func (k *Kernel) Kill(name string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.killed = append(k.killed, name)
	return nil
}

// Killed returns the cgroups whose processes were killed.
func (k *Kernel) Killed() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.killed)
}

// Usage implements cgroup.Kernel.
func (k *Kernel) Usage(name string) (cgroup.Usage, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	usage, known := k.usage[name]
	if _, ok := k.groups[name]; !ok && !known {
		return cgroup.Usage{}, fmt.Errorf("cgroup %s: %w", name, fs.ErrNotExist)
	}
	return usage, nil
}

// Transfers implements cgroup.Kernel: a fake cgroup has none.
func (k *Kernel) Transfers(name string) ([]cgroup.Transfer, error) {
	_, err := k.Usage(name)
	return nil, err
}

// Processes implements cgroup.Kernel: a fake cgroup has none.
func (k *Kernel) Processes(name string) ([]int, error) {
	_, err := k.Usage(name)
	return nil, err
}

// Children implements cgroup.Kernel.
func (k *Kernel) Children(name string) ([]string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	var names []string
	for group := range k.groups {
		if path.Dir(group) == name {
			names = append(names, path.Base(group))
		}
	}
	return names, nil
}
