package staticpods

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/kit/failpoint"
)

// The variables for a process that dies at a failpoint: its folder of manifests, its records, and which Pod the
// runtime has.
const (
	doomedFolder  = "STATICPODS_TEST_FOLDER"
	doomedRecords = "STATICPODS_TEST_RECORDS"
	doomedRuns    = "STATICPODS_TEST_RUNS"
)

// TestAgentDiesAtAFailpoint ends an agent by SIGKILL before and after it has written a record. The next one neither
// starts a Pod twice nor forgets one, and leaves only the records of its Pods.
//
// POD-067 SAF-197
func TestAgentDiesAtAFailpoint(t *testing.T) {
	if folder := os.Getenv(doomedFolder); folder != "" {
		if err := failpoint.ArmAll(os.Getenv(failpoint.EnvVar)); err != nil {
			t.Fatal(err)
		}
		doomed := stationAt(t, folder, os.Getenv(doomedRecords))
		doomed.runs[types.UID(os.Getenv(doomedRuns))] = true
		doomed.start()
		t.Fatalf("the agent lives, having told %q", doomed.told)
	}
	first := podOf(t, text("web", "1")).UID
	for _, r := range []struct {
		name, failpoint string
		// before is the running version, file what the agent finds when it dies, after what the next one finds.
		before, file, after string
		want                []string
	}{
		{"before a Pod's record", "before", "", "1", "1", []string{"run 1"}},
		{"before the record of a Pod whose file goes", "before", "", "1", "", nil},
		{"after a Pod's record", "after", "", "1", "1", []string{"run 1"}},
		{"after the record of a Pod whose file goes", "after", "", "1", "", []string{"run 1", "end known 1"}},
		{"before it notes an end", "before", "1", "2", "2", []string{"run known 1", "end known 1"}},
		{"before it notes an end that is taken back", "before", "1", "", "1", []string{"run known 1"}},
		{"after it has noted an end", "after", "1", "2", "2", []string{"end known 1"}},
		{"after it has noted an end for good", "after", "1", "", "1", []string{"end known 1"}},
	} {
		t.Run(r.name, func(t *testing.T) {
			s := newStation(t)
			lay := func(version string) {
				_ = os.Remove(filepath.Join(s.folder, "a")) // it may be missing
				if version != "" {
					put(t, filepath.Join(s.folder, "a"), text("web", version))
				}
			}
			runs := ""
			if r.before != "" {
				lay(r.before)
				s.look()
				s.runs[first], runs = true, string(first)
			}
			lay(r.file)
			doomed := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestAgentDiesAtAFailpoint$")
			doomed.Env = append(os.Environ(), doomedFolder+"="+s.folder, doomedRecords+"="+s.records,
				doomedRuns+"="+runs, failpoint.EnvVar+"=nodeagent/staticpod.save."+r.failpoint+"=crash")
			out, err := doomed.CombinedOutput()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != unix.SIGKILL {
				t.Fatalf("the agent ended by %v:\n%s", err, out)
			}
			put(t, filepath.Join(s.records, "."+string(first)+".json4711"), "{") // as if killed during the write
			lay(r.after)
			s.told, s.pods = nil, nil
			s = s.next()
			s.expect(r.want...)
			s.expectRecords(len(s.pods))
		})
	}
}

// next returns the agent after one that has died: it knows what is on disk, and what the runtime has.
func (s *station) next() *station {
	next := stationAt(s.T, s.folder, s.records)
	next.runs = s.runs
	next.start()
	return next
}

func (s *station) expectRecords(want int) {
	s.Helper()
	if left, err := os.ReadDir(s.records); err != nil || len(left) != want {
		s.Errorf("%d files beside the manifests, want %d: %v, %v", len(left), want, left, err)
	}
}

// TestDiskIsFull takes a Pod from its start to its end, with the death of the agent at each step, on a disk without
// room for any record. Pods run and end all the same, no record is ever half-written, and what could not be written
// is written when the disk has room.
//
// POD-067
func TestDiskIsFull(t *testing.T) {
	s := newStation(t)
	if err := unix.Mount("tmpfs", s.records, "tmpfs", 0, "size=64k"); err != nil {
		t.Fatalf("a small disk, which needs root: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(s.records, 0); err != nil {
			t.Error(err)
		}
	})
	filler := filepath.Join(s.records, "filler")
	fill := func() {
		t.Helper()
		if err := os.WriteFile(filler, make([]byte, 1<<20), 0o600); !errors.Is(err, unix.ENOSPC) {
			t.Fatalf("filling the disk: %v", err)
		}
	}
	empty := func() {
		t.Helper()
		if err := os.Remove(filler); err != nil {
			t.Fatal(err)
		}
	}
	fill()
	s.write("a", text("web", "1"))
	s.expect("run 1")
	s.runs[podOf(t, text("web", "1")).UID] = true
	s.expectRecords(1) // the filler
	s = s.next()
	s.expect("run known 1")
	empty()
	s.look()
	s.expect()
	s.expectRecords(1)

	fill()
	s.write("a", text("web", "2"))
	s.expect("end known 1")
	s.expectRecords(2) // the filler, and the unchanged record
	s = s.next()
	s.expect("run known 1", "end known 1")
	s.end("1")
	s.expect("run 2")
	delete(s.runs, podOf(t, text("web", "1")).UID)
	s.runs[podOf(t, text("web", "2")).UID] = true
	empty()
	s.look()
	s = s.next()
	s.expect("run known 2")
	s.expectRecords(1)
}
