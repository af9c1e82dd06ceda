package cpupin

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"k8s.io/utils/cpuset"
)

// ReadMachine reads the online CPUs from the sys file system. On a machine that does not report its topology, each
// CPU counts as a core of its own.
func ReadMachine(sys string) (Machine, error) {
	dir := filepath.Join(sys, "devices", "system", "cpu")
	text, err := os.ReadFile(filepath.Join(dir, "online"))
	if err != nil {
		return nil, fmt.Errorf("reading which cpus there are: %w", err)
	}
	online, err := cpuset.Parse(strings.TrimSpace(string(text)))
	if err != nil || online.IsEmpty() {
		return nil, fmt.Errorf("reading which cpus there are: %s/online holds %q", dir, text)
	}
	var out Machine
	for _, id := range online.List() {
		topology := filepath.Join(dir, "cpu"+strconv.Itoa(id), "topology")
		core, err := number(filepath.Join(topology, "core_id"), id)
		if err != nil {
			return nil, err
		}
		socket, err := number(filepath.Join(topology, "physical_package_id"), 0)
		if err != nil {
			return nil, err
		}
		out = append(out, CPU{ID: id, Core: core, Socket: socket})
	}
	return out, nil
}

// number reads a file with a number; it returns otherwise for a missing file.
func number(file string, otherwise int) (int, error) {
	text, err := os.ReadFile(file)
	if os.IsNotExist(err) {
		return otherwise, nil
	}
	if err != nil {
		return 0, fmt.Errorf("reading how cpus lie together: %w", err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0, fmt.Errorf("reading how cpus lie together: %s holds %q", file, text)
	}
	return n, nil
}
