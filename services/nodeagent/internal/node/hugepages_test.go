package node

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// Huge pages that the kernel has reserved are reported by size, and are no memory for anything else. Sizes that the
// machine no longer has are removed, and what other clients have added stays.
func TestHugePages(t *testing.T) {
	const mib = 1 << 20
	for _, r := range []struct {
		name                  string
		pages                 map[int64]int64
		reserved              corev1.ResourceList
		capacity, allocatable corev1.ResourceList
	}{
		{"none of a size", map[int64]int64{2 * mib: 0}, nil, list("memory", "4Gi", "hugepages-2Mi", "0"),
			list("memory", "4Gi", "hugepages-2Mi", "0")},
		{"of two sizes", map[int64]int64{2 * mib: 512 * mib, 1 << 30: 2 << 30}, list("memory", "100Mi"),
			list("memory", "4Gi", "hugepages-2Mi", "512Mi", "hugepages-1Gi", "2Gi"),
			list("memory", "1436Mi", "hugepages-2Mi", "512Mi", "hugepages-1Gi", "2Gi")},
		{"more than is left", map[int64]int64{1 << 30: 4 << 30}, list("memory", "1Mi"),
			list("memory", "4Gi", "hugepages-1Gi", "4Gi"), list("memory", "0", "hugepages-1Gi", "4Gi")},
		{"of 64 KiB", map[int64]int64{64 << 10: 0}, nil, list("memory", "4Gi", "hugepages-64Ki", "0"),
			list("memory", "4Gi", "hugepages-64Ki", "0")},
	} {
		f := facts()
		f.HugePages, f.Reserved = r.pages, r.reserved
		old := &corev1.NodeStatus{Capacity: list("hugepages-32Mi", "32Mi", "example.com/gpu", "1")}
		capacity, allocatable := f.resources(old)
		for what, pair := range map[string][2]corev1.ResourceList{"capacity": {capacity, r.capacity},
			"allocatable": {allocatable, r.allocatable}} {
			want := maps.Clone(pair[1])
			maps.Copy(want, list("cpu", "2", "ephemeral-storage", "1Gi", "pods", "110", "example.com/gpu", "1"))
			if !equalLists(pair[0], want) {
				t.Errorf("%s: %s %v, want %v", r.name, what, pair[0], want)
			}
		}
	}
}

func TestReadsHugePages(t *testing.T) {
	dir := t.TempDir()
	if pages, err := hugePages(filepath.Join(dir, "none")); err != nil || len(pages) != 0 {
		t.Errorf("of a kernel without them: %v, %v", pages, err)
	}
	write := func(folder, pages string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, folder, "nr_hugepages"), []byte(pages), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("hugepages-2048kB", "3\n")
	write("hugepages-1048576kB", "0\n")
	write("other", "1\n")
	if pages, err := hugePages(dir); err != nil || !maps.Equal(pages, map[int64]int64{2 << 20: 6 << 20, 1 << 30: 0}) {
		t.Errorf("read %v, %v", pages, err)
	}
	write("hugepages-2048kB", "many\n")
	if _, err := hugePages(dir); err == nil || !strings.Contains(err.Error(), "hugepages-2048kB/nr_hugepages") {
		t.Errorf("of a file without a number: %v", err)
	}
}
