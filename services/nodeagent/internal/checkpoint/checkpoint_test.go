package checkpoint

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/kit/failpoint"
	"keelson.dev/services/nodeagent/internal/sizes"
)

func TestRoundTrip(t *testing.T) {
	s, err := Open(filepath.Join(t.TempDir(), "records"))
	if err != nil {
		t.Fatal(err)
	}
	want := Record{Version: 5, Streaks: map[string]uint32{"web": 7}, Hooked: []string{"c1"},
		Ended:  &Ended{Reason: "Evicted", Message: "too much", Grace: time.Second},
		Resize: &Resize{Allocated: sizes.Size{Containers: map[string]corev1.ResourceRequirements{"web": {}}}}}
	if err := s.Save("u1", want); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Load("u1"); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("loaded %+v, error %v; want %+v", got, err, want)
	}
	if uids, err := s.Pods(); err != nil || len(uids) != 1 || uids[0] != "u1" {
		t.Errorf("Pods = %v, error %v", uids, err)
	}
	for range 2 {
		if err := s.Remove("u1"); err != nil {
			t.Errorf("removing: %v", err)
		}
	}
	if got, err := s.Load("u1"); err != nil || !got.Empty() {
		t.Errorf("loaded %+v, error %v after removal", got, err)
	}
}

// A record that cannot be read yields an empty one and says why.
func TestBadRecords(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"cut": `{"version":1,"str`, "later": `{"version":6,"hooked":["x"]}`,
		"none": `{"hooked":["x"]}`} {
		if err := os.WriteFile(filepath.Join(dir, name+".json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"cut", "later", "none"} {
		r, err := s.Load(types.UID(name))
		if err == nil || !r.Empty() {
			t.Errorf("%s: loaded %+v, error %v; want nothing and an error", name, r, err)
		}
	}
}

// Records of agents of earlier versions are read: testdata holds one of each, as that agent wrote it.
func TestEarlierVersions(t *testing.T) {
	s, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	asks := corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}}
	for version, want := range map[int]Record{
		1: {Version: 1, Streaks: map[string]uint32{"web": 7, "log": 2}, Hooked: []string{"2f1c", "9e40"}},
		2: {Version: 2, Hooked: []string{"2f1c"}, Ended: &Ended{Reason: "Evicted", Message: "too much",
			Grace: time.Second}},
		3: {Version: 3, Resize: &Resize{Allocated: sizes.Size{Containers: map[string]corev1.ResourceRequirements{
			"web": asks}},
			Updated: map[string]sizes.Instance{"2f1c": {Resources: asks}}, Restarted: []string{"9e40"}}},
		4: {Version: 4, Ended: &Ended{Reason: "Evicted", Message: "low on memory", Grace: time.Second,
			Disruption: true}},
		5: {Version: 5, RestartAll: &RestartAll{Container: "web", ExitCode: 42,
			Last: map[string]uint32{"web": 3, "log": 0}, Stopped: []string{"log"}}},
	} {
		data, err := os.ReadFile(filepath.Join("testdata", fmt.Sprintf("version%d.json", version)))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(s.file("u1"), data, 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := s.Load("u1")
		if err != nil || !apiequality.Semantic.DeepEqual(got, want) {
			t.Errorf("version %d: loaded %+v, error %v; want %+v", version, got, err, want)
		}
		if err := s.Save("u1", got); err != nil {
			t.Fatal(err)
		}
		if again, err := s.Load("u1"); err != nil || again.Version != 5 || !reflect.DeepEqual(again.Hooked,
			want.Hooked) {
			t.Errorf("version %d: saved and loaded again %+v, error %v", version, again, err)
		}
	}
}

// A save that dies before the rename leaves the old record.
func TestInterruptedSave(t *testing.T) {
	s, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Save("u1", Record{Hooked: []string{"old"}}); err != nil {
		t.Fatal(err)
	}
	if err := failpoint.Arm("nodeagent/checkpoint.save.before", "error(gone)"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { failpoint.Disarm("nodeagent/checkpoint.save.before") })
	if err := s.Save("u1", Record{Hooked: []string{"new"}}); err == nil {
		t.Fatal("the save did not fail")
	}
	if r, err := s.Load("u1"); err != nil || r.Hooked[0] != "old" {
		t.Errorf("loaded %+v, error %v; want the old record", r, err)
	}
}
