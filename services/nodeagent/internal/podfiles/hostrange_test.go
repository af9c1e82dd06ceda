package podfiles

import (
	"os"
	"path/filepath"
	"testing"

	"keelson.dev/services/nodeagent/internal/userns"
)

// program puts a getsubids on the PATH that answers with a shell script.
func program(t *testing.T, script string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, getsubids), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

// SAF-102, SAF-106: the program's answer is understood for users and groups.
func TestSubordinates(t *testing.T) {
	program(t, `[ "$1" = -g ] && echo "0: kubelet 131072 65536" || printf '0: kubelet 65536 7208960\n1: kubelet 9 9\n'`)
	if got, err := subordinates(t.Context(), userns.User); err != nil || got != "kubelet:65536:7208960\nkubelet:9:9\n" {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := subordinates(t.Context(), "-g", userns.User); err != nil || got != "kubelet:131072:65536\n" {
		t.Errorf("%q, %v", got, err)
	}
	program(t, "exit 1")
	if got, err := subordinates(t.Context(), userns.User); err != nil || got != "" {
		t.Errorf("%q, %v", got, err)
	}
}

// SAF-101: a host without the user gets the default range.
func TestHostRangeDefault(t *testing.T) {
	program(t, "echo '0: kubelet 0 1'")
	if got, err := HostRange(t.Context(), 110); err != nil || got != userns.Default(110) {
		t.Errorf("%v, %v", got, err)
	}
}
