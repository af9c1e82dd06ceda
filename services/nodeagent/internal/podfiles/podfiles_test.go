package podfiles

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/kit/failpoint"
	"keelson.dev/services/nodeagent/internal/plainfile"
	"keelson.dev/services/nodeagent/internal/plainfile/plainfiletest"
	"keelson.dev/services/nodeagent/internal/userns"
)

func podNamed(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", UID: "u-1"}}
}

func newRoot(t *testing.T) Root {
	dir := t.TempDir()
	return Root{Dir: dir, LogDir: filepath.Join(dir, "logs")}
}

func TestFilesOfAPod(t *testing.T) {
	root, pod := newRoot(t), podNamed("web")
	for range 2 { // every step may be repeated
		if err := root.Make(pod); err != nil {
			t.Fatal(err)
		}
		if err := root.MakeLogs(pod, "app", 0); err != nil {
			t.Fatal(err)
		}
		if _, err := root.WriteHosts(pod.UID, []byte("127.0.0.1 localhost\n")); err != nil {
			t.Fatal(err)
		}
	}
	if info, err := os.Stat(filepath.Dir(root.ContainerLog(pod, "app", 0))); err != nil || !info.IsDir() {
		t.Errorf("log folder: %v", err)
	}
	if info, err := os.Stat(root.Hosts(pod.UID)); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("hosts file: %v, %v", info, err)
	}
	if uids, err := root.List(); err != nil || len(uids) != 1 || uids[0] != "u-1" {
		t.Errorf("List = %v, %v", uids, err)
	}
	if err := root.RemoveLogs(pod); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(root.Logs(pod)); !os.IsNotExist(err) {
		t.Errorf("logs are left: %v", err)
	}
	if uids, err := (Root{Dir: filepath.Join(root.Dir, "none")}).List(); err != nil || len(uids) != 0 {
		t.Errorf("List of nothing = %v, %v", uids, err)
	}
}

// The hosts file is mounted into running containers, so its inode must stay.
func TestHostsFileIsWrittenInPlace(t *testing.T) {
	root, pod := newRoot(t), podNamed("web")
	if err := root.Make(pod); err != nil {
		t.Fatal(err)
	}
	path, _ := root.WriteHosts(pod.UID, []byte("one\n"))
	before, _ := os.Stat(path)
	if _, err := root.WriteHosts(pod.UID, []byte("two\n")); err != nil {
		t.Fatal(err)
	}
	after, _ := os.Stat(path)
	if text, _ := os.ReadFile(path); !os.SameFile(before, after) || string(text) != "two\n" {
		t.Errorf("same file: %v, contents %q", os.SameFile(before, after), text)
	}
}

// POD-088: the termination message of a container, at most 4096 bytes and never half a character.
func TestTerminationMessage(t *testing.T) {
	root, pod := newRoot(t), podNamed("web")
	path, err := root.MakeTerminationLog(pod.UID, "app", 1)
	if err != nil {
		t.Fatal(err)
	}
	if info, _ := os.Stat(path); info.Mode().Perm() != 0o666 {
		t.Errorf("mode %v", info.Mode())
	}
	for contents, want := range map[string]string{
		"":                                "",
		"it broke":                        "it broke",
		strings.Repeat("x", 5000):         strings.Repeat("x", 4096),
		"abc" + strings.Repeat("é", 3000): "abc" + strings.Repeat("é", 2046),
	} {
		if err := os.WriteFile(path, []byte(contents), 0o666); err != nil {
			t.Fatal(err)
		}
		if got, err := root.ReadTerminationMessage(path, 4096); err != nil || got != want {
			t.Errorf("%d bytes: got %d bytes, %v; want %d", len(contents), len(got), err, len(want))
		}
	}
	if got, err := root.ReadTerminationMessage(path+".none", 4096); got != "" || err != nil {
		t.Errorf("no file: %q, %v", got, err)
	}
}

// The termination messages of all containers of a Pod have at most 12 KiB together.
func TestMaxTerminationMessage(t *testing.T) {
	for containers, want := range map[int]int{0: 4096, 1: 4096, 3: 4096, 4: 3072, 12: 1024, 100: 122} {
		if got := MaxTerminationMessage(containers); got != want {
			t.Errorf("%d containers: %d bytes each, want %d", containers, got, want)
		}
	}
}

// POD-088: anything but a file at the path of a container's termination log is no message, and nothing blocks on
// it.
func TestTerminationMessageIsAPlainFile(t *testing.T) {
	for name, lay := range plainfiletest.Traps {
		t.Run(name, func(t *testing.T) {
			root, pod := newRoot(t), podNamed("web")
			path, err := root.MakeTerminationLog(pod.UID, "app", 0)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			lay(t, path)
			if got, err := root.ReadTerminationMessage(path, 4096); !errors.Is(err, plainfile.ErrNotPlain) ||
				got != "" {
				t.Errorf("%q, %v", got, err)
			}
			if _, err := root.MakeTerminationLog(pod.UID, "app", 0); !errors.Is(err, plainfile.ErrNotPlain) {
				t.Errorf("made again: %v", err)
			}
		})
	}
}

func TestHostsIsAPlainFile(t *testing.T) {
	for name, lay := range plainfiletest.Traps {
		t.Run(name, func(t *testing.T) {
			root, pod := newRoot(t), podNamed("web")
			if err := root.Make(pod); err != nil {
				t.Fatal(err)
			}
			lay(t, root.Hosts(pod.UID))
			if _, err := root.WriteHosts(pod.UID, []byte("one\n")); !errors.Is(err, plainfile.ErrNotPlain) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// A container may write any amount to /etc/hosts: it is not read back.
func TestHostsOfAnySize(t *testing.T) {
	root, pod := newRoot(t), podNamed("web")
	if err := root.Make(pod); err != nil {
		t.Fatal(err)
	}
	path := root.Hosts(pod.UID)
	if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, 1<<40)); err != nil {
		t.Fatal(err)
	}
	if _, err := root.WriteHosts(pod.UID, []byte("one\n")); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Size() != 4 || info.Mode() != 0o644 {
		t.Errorf("%v, %v", info, err)
	}
}

// Anything but a file at the path of the next instance's log is removed: the runtime would open it. A file stays:
// it is the instance's log.
func TestMakeLogsClearsTheWay(t *testing.T) {
	for name, lay := range plainfiletest.Traps {
		t.Run(name, func(t *testing.T) {
			root, pod := newRoot(t), podNamed("web")
			if err := root.MakeLogs(pod, "app", 0); err != nil {
				t.Fatal(err)
			}
			path := root.ContainerLog(pod, "app", 0)
			lay(t, path)
			if err := root.MakeLogs(pod, "app", 0); err != nil {
				t.Error(err)
			}
			if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("it is still there: %v", err)
			}
			if err := errors.Join(os.WriteFile(path, []byte("x"), 0o600), root.MakeLogs(pod, "app", 0)); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Lstat(path); err != nil {
				t.Errorf("a log went: %v", err)
			}
		})
	}
}

// SAF-097: ranges survive a restart of the nodeagent, and a record that could not be written is no assignment.
func TestUserRangesSurvive(t *testing.T) {
	root := newRoot(t)
	for _, uid := range []string{"a", "b", "c"} {
		if err := os.MkdirAll(filepath.Join(root.Dir, "pods", uid), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	ranges, err := OpenUserRanges(root, userns.Default(3))
	if err != nil {
		t.Fatal(err)
	}
	a, errA := ranges.Assign("a")
	if err := failpoint.Arm("nodeagent/record.write.before", "1*error(disk full)"); err != nil {
		t.Fatal(err)
	}
	if _, err := ranges.Assign("b"); err == nil {
		t.Error("assigned without a record")
	}
	failpoint.Disarm("nodeagent/record.write.before")
	b, errB := ranges.Assign("b")
	if errA != nil || errB != nil || a.First == b.First {
		t.Fatalf("%v %v, %v %v", a, errA, b, errB)
	}
	again, err := OpenUserRanges(root, userns.Default(3))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := again.Assign("b"); err != nil || *got != *b {
		t.Errorf("after a restart b has %v, %v; had %v", got, err, b)
	}
	if c, err := again.Assign("c"); err != nil || c.First == a.First || c.First == b.First {
		t.Errorf("c got %v, %v", c, err)
	}
	again.Release("a")
	if got, err := again.Assign("d"); err == nil {
		t.Errorf("a pod without a folder got %v", got)
	}
}

func TestBadRangeRecordsAreReported(t *testing.T) {
	root := newRoot(t)
	for uid, text := range map[string]string{"a": "{", "b": `{"version":9}`,
		"c": `{"version":1,"first":5,"length":65536}`, "d": `{"version":1,"first":65536,"length":65536}`} {
		dir := filepath.Join(root.Dir, "pods", uid)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "userns.json"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	ranges, err := OpenUserRanges(root, userns.Default(2))
	if err == nil || strings.Count(err.Error(), "\n") != 2 {
		t.Errorf("got %v", err)
	}
	if d, err := ranges.Assign("d"); err != nil || d.First != 65536 {
		t.Errorf("the good record was lost: %v, %v", d, err)
	}
}

// Logs of a Pod of which only the UID is known, because the API forgot it while no agent ran, are found and
// removed; those of other Pods, and other files, stay.
func TestLogsOfForgottenPods(t *testing.T) {
	root := newRoot(t)
	for _, folder := range []string{"ns_web_u-1", "ns_api_u-2", "other", "a_b_c_d"} {
		if err := os.MkdirAll(filepath.Join(root.LogDir, folder, "app"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	uids, err := root.Logged()
	slices.Sort(uids)
	if err != nil || !slices.Equal(uids, []types.UID{"u-1", "u-2"}) {
		t.Errorf("logged: %v, %v", uids, err)
	}
	for range 2 {
		if err := root.RemoveLogs(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u-1"}}); err != nil {
			t.Fatal(err)
		}
	}
	left, err := filepath.Glob(filepath.Join(root.LogDir, "*"))
	if err != nil || len(left) != 3 || slices.Contains(left, filepath.Join(root.LogDir, "ns_web_u-1")) {
		t.Errorf("left: %v, %v", left, err)
	}
	if uids, err := (Root{LogDir: filepath.Join(root.LogDir, "none")}).Logged(); err != nil || len(uids) != 0 {
		t.Errorf("without a folder: %v, %v", uids, err)
	}
}

// Folders that are nested without end, and one with many entries, neither exhaust the agent nor stay.
func TestRemoveWhatIsDeepAndWide(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tree")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range 2500 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint("file-", i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// An existing name is not replaced when a folder is moved up.
	if err := os.Mkdir(filepath.Join(dir, ".deep-1"), 0o755); err != nil {
		t.Fatal(err)
	}
	plainfiletest.Nest(t, dir, 5000)
	var was, few unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	few = was
	few.Cur = 400
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
			t.Error(err)
		}
	}()
	if err := RemoveTree(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder is still there: %v", err)
	}
}
