package node

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"keelson.dev/cli/internal/plan"
)

func TestConfigurationIsWrittenOnlyWhenItChanges(t *testing.T) {
	files := plan.Layout{Dir: t.TempDir()}.Node("node-1")
	write := func(programs string) {
		t.Helper()
		if err := WriteConfig(plan.ContainerdInput{Node: files, Programs: programs}); err != nil {
			t.Fatal(err)
		}
	}
	stat := func(file string) os.FileInfo {
		t.Helper()
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		return info
	}
	config := files.Containerd("config.toml")
	write("/a")
	before := stat(config)
	write("/a")
	if !os.SameFile(before, stat(config)) {
		t.Error("the same configuration was written again")
	}
	write("/b")
	if os.SameFile(before, stat(config)) {
		t.Error("another configuration was not written")
	}
	left, err := filepath.Glob(filepath.Join(files.CNI("conf"), "*"))
	if err != nil || len(left) != 0 || !stat(files.CNI("conf")).IsDir() {
		t.Errorf("the network's configuration is the nodeagent's: %v, %v", left, err)
	}
}

func TestArchives(t *testing.T) {
	dir := t.TempDir()
	if _, err := Archives(dir); err == nil || !strings.Contains(err.Error(), "holds no image archives") {
		t.Errorf("an empty folder: %v", err)
	}
	for name, content := range map[string]string{"a.tar": "1", "b.tar": "2", "c.txt": "3"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	archives, err := Archives(dir)
	if err != nil || len(archives) != 2 {
		t.Fatalf("got %v, %v", archives, err)
	}
	sums, err := Sums(t.Context(), archives)
	if err != nil || len(sums) != 2 || sums[archives[0]] == sums[archives[1]] {
		t.Errorf("got %v, %v", sums, err)
	}
}
