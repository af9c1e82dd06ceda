package backup

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"keelson.dev/kit/failpoint"
	"keelson.dev/services/apiserver/internal/storage/storedir"
)

// asProgram is the environment variable that makes the test's program the apiserver's.
const asProgram = "KEELSON_TEST_STORE"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		os.Exit(Main(os.Args[1:]))
	}
	os.Exit(m.Run())
}

// program is a process of its own with these arguments, and failpoints if there are any.
func program(t *testing.T, failpoints string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	run := exec.CommandContext(t.Context(), self, args...)
	run.Env = append(os.Environ(), asProgram+"=1", failpoint.EnvVar+"="+failpoints)
	return run
}

// A restore that is killed leaves the store that was there, or the restored one, of which the apiserver takes either;
// what it leaves beside is not in the way of the next.
func TestRestoreKilled(t *testing.T) {
	for _, otherMesh := range []bool{false, true} {
		for _, place := range []struct {
			failpoint string
			restored  bool
		}{
			{"apiserver/restore.stage.before=crash", false},
			{"apiserver/restore.stage.after=crash", false},
			{"apiserver/restore.install.before=crash", false},
			{"apiserver/restore.install.before=1*off->crash", false},
			{"apiserver/restore.install.after=1*off->crash", !otherMesh},
			{"apiserver/restore.install.after=2*off->crash", true},
		} {
			if !otherMesh && strings.Contains(place.failpoint, "2*off") {
				continue // there are two steps then
			}
			t.Run(
				fmt.Sprint(place.failpoint, otherMesh),
				func(t *testing.T) { killed(t, place.failpoint, otherMesh, place.restored) },
			)
		}
	}
}

func killed(t *testing.T, failpoints string, otherMesh, restored bool) {
	file, s := saved(t)
	if otherMesh {
		s.Close()
		s = open(t, newDir(t))
	}
	s.put(t, "/registry/pods/default/late", "1")
	before := s.content(t)
	snapshot, _, err := Verify(file)
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	args := []string{"restore", file, "--replace", "--data-dir", s.dir}
	if otherMesh {
		args = append(args, "--other-mesh")
	}
	if out, err := program(t, failpoints, args...).CombinedOutput(); err == nil ||
		!strings.Contains(string(out), "crash") {
		t.Fatalf("it was not killed: %v, %s", err, out)
	}
	want := before.Checksum
	if restored {
		want = snapshot.Checksum
	}
	again := open(t, s.dir)
	if got := again.content(t); got.Checksum != want {
		t.Errorf("it holds %+v", got)
	}
	again.Close()
	later := restoring{file: file, dataDir: s.dir, replace: true, otherMesh: otherMesh, now: time.Now().Add(time.Hour)}
	if _, err := later.restore(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, name := range list(t, s.dir) {
		if strings.HasSuffix(name, stagingSuffix) {
			t.Errorf("%s is left", name)
		}
	}
	if got := open(t, s.dir).content(t); got.Checksum != snapshot.Checksum {
		t.Errorf("restored anew, it holds %+v", got)
	}
}

// Without a store, a restore of another mesh's snapshot that is killed does not let the apiserver begin an empty mesh.
func TestRestoreIntoAnEmptyMeshKilled(t *testing.T) {
	file, s := saved(t)
	s.Close()
	other := open(t, newDir(t))
	other.Close()
	if err := os.Rename(filepath.Join(other.dir, "etcd"), other.dir+"-old"); err != nil {
		t.Fatal(err)
	}
	for i, crash := range []string{"crash", "1*off->crash"} {
		out, err := program(t, "apiserver/restore.install.before="+crash, "restore", file,
			"--other-mesh", "--replace", "--data-dir", other.dir).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "crash") {
			t.Fatalf("it was not killed: %v, %s", err, out)
		}
		if identity, err := storedir.ReadIdentity(storedir.Of(other.dir)); err != nil || identity == "" {
			t.Errorf("killed before step %d: %q, %v", i, identity, err)
		}
	}
	must(t, "restore", file, "--other-mesh", "--replace", "--data-dir", other.dir)
	open(t, other.dir)
}

// A restore that is killed at any time while the library works leaves the store that was there.
func TestRestoreKilledWhileItWorks(t *testing.T) {
	file, s := saved(t)
	want := s.content(t)
	s.Close()
	for i := range 5 {
		run := program(t, "", "restore", file, "--replace", "--data-dir", s.dir)
		if err := run.Start(); err != nil {
			t.Fatal(err)
		}
		staging := storedir.Of(s.dir).Store + stagingSuffix
		deep := []string{staging, storedir.At(staging).Database, storedir.At(staging).Log}[i%3]
		eventually(t, deep+" to be made", func() bool { return exists(deep) })
		_ = run.Process.Kill()
		_ = run.Wait()
		again := open(t, s.dir)
		if got := again.content(t); got.Checksum != want.Checksum {
			t.Fatalf("round %d: %+v", i, got)
		}
		again.Close()
	}
}

// A snapshot that is killed has no name, or its own and is whole; what else it leaves goes with the next.
func TestSnapshotKilled(t *testing.T) {
	_, s := saved(t)
	dir := t.TempDir()
	for i, crash := range []string{"crash", "1*off->crash"} {
		out, err := program(t, "apiserver/snapshot.rename.before="+crash, "snapshot", dir,
			"--data-dir", s.dir).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "crash") {
			t.Fatalf("it was not killed: %v, %s", err, out)
		}
		for _, name := range list(t, dir) {
			if ownName.MatchString(name) {
				t.Errorf("killed before rename %d: %s has its name", i, name)
			}
		}
	}
	done, err := taking{path: dir, keep: 1, now: time.Now().Add(time.Hour)}.take(t.Context(), s.client.Client)
	if err != nil {
		t.Fatal(err)
	}
	made := filepath.Base(done.path)
	if left := list(t, dir); !equalSets(left, []string{made, made + recordSuffix}) {
		t.Errorf("there is %v", left)
	}
	if _, _, err := Verify(done.path); err != nil {
		t.Error(err)
	}
}
