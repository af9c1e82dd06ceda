package staticpods

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	"keelson.dev/kit/events"
	"keelson.dev/kit/podview"
)

// station is a node with a folder of manifests: it records the calls to workers, and the messages.
type station struct {
	*testing.T
	*Source
	folder, records string
	runs            map[types.UID]bool
	full            bool
	told, said      []string
	pods            map[types.UID]*corev1.Pod
	statuses        map[types.UID]corev1.PodStatus
	deleted         []types.UID
}

func newStation(t *testing.T) *station {
	s := stationAt(t, t.TempDir(), t.TempDir())
	s.start()
	return s
}

// stationAt returns a station without an agent.
func stationAt(t *testing.T, folder, records string) *station {
	return &station{T: t, folder: folder, records: records, runs: map[types.UID]bool{},
		pods: map[types.UID]*corev1.Pod{}, statuses: map[types.UID]corev1.PodStatus{}}
}

// start starts an agent's Source, and makes it read the files once.
func (s *station) start() {
	s.Source = New(Config{
		Log: zap.NewNop(), Path: s.folder, NodeName: node, Records: s.records, Statuses: s,
		Set: func(pod *corev1.Pod, known bool) {
			if before := s.pods[pod.UID]; before == nil || podview.IsTerminating(pod) != podview.IsTerminating(before) {
				what := map[bool]string{true: "end", false: "run"}[podview.IsTerminating(pod)]
				if known {
					what += " known"
				}
				s.told = append(s.told, what+" "+pod.Labels["version"])
			}
			s.pods[pod.UID] = pod
		},
		Remove:   func(uid types.UID) { delete(s.pods, uid) },
		Known:    func(uid types.UID) bool { return s.runs[uid] },
		MakeRoom: func(*corev1.Pod) bool { return !s.full },
		Client:   fake.NewClientset().CoreV1(),
		Owner:    func() types.UID { return "node-uid" },
		Record:   func(e events.Event) { s.said = append(s.said, e.Reason+" "+e.Message) },
	})
	s.restore()
	s.look()
}

func (s *station) Publish(pod *corev1.Pod, status corev1.PodStatus, _ bool) {
	s.statuses[pod.UID] = status
}
func (s *station) Delete(_ context.Context, pod *corev1.Pod) error {
	s.deleted = append(s.deleted, pod.UID)
	return nil
}
func (s *station) Forget(types.UID) {}

// write writes a file and makes the Source read it.
func (s *station) write(name, content string) {
	s.Helper()
	put(s.T, filepath.Join(s.folder, name), content)
	s.look()
}

// expect compares the calls to workers since the last time.
func (s *station) expect(want ...string) {
	s.Helper()
	if !slices.Equal(s.told, want) {
		s.Errorf("workers were told %q, want %q", s.told, want)
	}
	s.told = nil
}

// end ends the Pod of the version, as its worker does when nothing is left, and makes the Source read the files.
func (s *station) end(version string) {
	s.Helper()
	uid := podOf(s.T, text("web", version)).UID
	if !s.Runs(uid) {
		s.Fatalf("version %s does not run", version)
	}
	s.Gone(uid)
	if s.pods[uid] != nil || s.Runs(uid) {
		s.Errorf("version %s is not forgotten", version)
	}
	s.look()
}

// POD-064 SET-161: the Source follows files, and a Pod follows another of its name when that has ended.
func TestFollowsFiles(t *testing.T) {
	s := newStation(t)
	s.expect()
	s.write("a", text("web", "1"))
	s.expect("run 1")
	s.look()
	s.expect()
	s.write("a", text("web", "2"))
	s.expect("end known 1")
	s.look()
	s.expect()
	s.end("1")
	s.expect("run 2")
	if err := os.Rename(filepath.Join(s.folder, "a"), filepath.Join(s.folder, "b")); err != nil {
		t.Fatal(err)
	}
	s.look()
	s.expect()
	s.write("b", "{")
	s.expect()
	if err := os.Remove(filepath.Join(s.folder, "b")); err != nil {
		t.Fatal(err)
	}
	s.look()
	s.expect("end known 2")
	s.write("b", text("web", "2")) // back before the end
	s.expect()
	s.end("2")
	s.expect("run 2")
}

// A Pod gets its own grace period, as if it were deleted from the API.
func TestGrace(t *testing.T) {
	s := newStation(t)
	s.write("a", text("web", "1"))
	uid := podOf(t, text("web", "1")).UID
	if err := os.RemoveAll(s.folder); err != nil {
		t.Fatal(err)
	}
	s.look()
	pod := s.pods[uid]
	if !podview.IsTerminating(pod) || *pod.DeletionGracePeriodSeconds != 30 {
		t.Errorf("ended as %+v", pod.ObjectMeta)
	}
	s.Publish(pod, corev1.PodStatus{}, false)
	s.Source.Publish(pod, corev1.PodStatus{Phase: corev1.PodFailed}, false)
	if !podview.IsTerminating(s.pods[uid]) || s.pods[uid].Status.Phase != corev1.PodFailed {
		t.Errorf("a status made it %+v", s.pods[uid])
	}
}

// POD-067: an agent that starts takes over its Pods, even if the files have changed meanwhile.
func TestAgentStartsAnew(t *testing.T) {
	uid := func(version string) types.UID { return podOf(t, text("web", version)).UID }
	for _, r := range []struct {
		name string
		// meanwhile is what happens between two agents.
		meanwhile func(s *station)
		want      []string
	}{
		{"nothing", func(*station) {}, []string{"run known 1"}},
		{"the machine was started anew", func(s *station) { s.runs = nil }, []string{"run 1"}},
		{"the file is gone", func(s *station) { _ = os.RemoveAll(s.folder) }, []string{"run known 1", "end known 1"}},
		{"the file is damaged", func(s *station) { put(t, filepath.Join(s.folder, "a"), "{") },
			[]string{"run known 1"}},
		{"another content", func(s *station) { put(t, filepath.Join(s.folder, "a"), text("web", "2")) },
			[]string{"run known 1", "end known 1"}},
		{"the folder is no longer one of manifests", func(s *station) { s.folder = "" },
			[]string{"run known 1", "end known 1"}},
		{"the record is damaged", func(s *station) { put(t, records(s.records).file(uid("1")), "{") },
			[]string{"run known 1"}},
		{"the record is of another version", func(s *station) {
			put(t, records(s.records).file(uid("1")), `{"version": 2}`)
		}, []string{"run known 1"}},
		{"the record is of a Pod that cannot be", func(s *station) {
			file := records(s.records).file(uid("1"))
			data, _ := os.ReadFile(file)
			put(t, file, strings.ReplaceAll(string(data), `"main"`, `"../main"`))
		}, []string{"run known 1"}},
	} {
		t.Run(r.name, func(t *testing.T) {
			s := newStation(t)
			s.write("a", text("web", "1"))
			s.expect("run 1")
			s.runs[uid("1")] = true
			r.meanwhile(s)
			s.pods = map[types.UID]*corev1.Pod{}
			s.start()
			s.expect(r.want...)
		})
	}
}

// If an agent dies while it ends a Pod, the next one goes on ending it.
func TestAgentDiesWhileAPodEnds(t *testing.T) {
	s := newStation(t)
	s.write("a", text("web", "1"))
	s.write("a", text("web", "2"))
	s.told, s.pods = nil, map[types.UID]*corev1.Pod{}
	s.runs[podOf(t, text("web", "1")).UID] = true
	s.start()
	s.expect("end known 1")
	s.end("1")
	s.expect("run 2")
	if left, err := os.ReadDir(s.records); err != nil || len(left) != 1 {
		t.Errorf("%d records, %v, want that of the Pod that runs", len(left), err)
	}
}

// A Pod that the runtime has is taken over whenever its file appears, and is new once it has ended.
func TestFileComesLate(t *testing.T) {
	s := newStation(t)
	s.runs[podOf(t, text("web", "1")).UID] = true
	s.write("a", text("web", "1"))
	s.expect("run known 1")
	s.end("1")
	s.expect("run 1")
}

// A Pod whose record cannot be written runs all the same, and its record is written later.
func TestRecordsCannotBeWritten(t *testing.T) {
	s := newStation(t)
	if err := os.Remove(s.records); err != nil {
		t.Fatal(err)
	}
	put(t, s.records, "in the way")
	s.write("a", text("web", "1"))
	s.expect("run 1")
	if err := os.Remove(s.records); err != nil {
		t.Fatal(err)
	}
	s.look()
	if left, err := os.ReadDir(s.records); err != nil || len(left) != 1 {
		t.Errorf("%d records, %v", len(left), err)
	}
}

// A Pod waits until room is made for it.
func TestWaitsForRoom(t *testing.T) {
	s := newStation(t)
	s.full = true
	s.write("a", text("web", "1"))
	s.expect()
	s.full = false
	s.look()
	s.expect("run 1")
}

// The problem of a file is reported once, with its path, until the problem changes.
func TestSaysOnce(t *testing.T) {
	s := newStation(t)
	s.write("a", "{")
	s.look()
	s.write("a", "")
	s.write("a", text("web", "1"))
	s.write("a", "")
	path := filepath.Join(s.folder, "a")
	if len(s.said) != 3 || !strings.HasPrefix(s.said[0], "InvalidManifest "+path+": it is no manifest: ") ||
		s.said[1] != "InvalidManifest "+path+": it is empty" ||
		!strings.HasPrefix(s.said[2], s.said[1]+
			"; the Pod kube-system/web-node-1.example that it held before runs on") {
		t.Errorf("said %q", s.said)
	}
}

// POD-068 POD-069: a mirror is created, shows the status, and is recreated after its deletion.
func TestMirrors(t *testing.T) {
	s := newStation(t)
	s.write("a", text("web", "1"))
	static := s.pods[podOf(t, text("web", "1")).UID]
	name := nameOf(static)
	step := func() {
		t.Helper()
		if err := s.mirror(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	step()
	mirror := s.mirrors[name]
	if mirror == nil {
		t.Fatal("there is no mirror")
	}
	mirror.UID = "mirror-1"
	s.Source.Publish(static, corev1.PodStatus{Phase: corev1.PodRunning}, false)
	if s.statuses["mirror-1"].Phase != corev1.PodRunning || s.pods[static.UID].Status.Phase != corev1.PodRunning {
		t.Errorf("the mirror shows %+v, the Pod has %+v", s.statuses["mirror-1"], s.pods[static.UID].Status)
	}
	leaving := mirror.DeepCopy()
	leaving.DeletionTimestamp = &metav1.Time{}
	leaving.DeletionTimestamp.Time = leaving.DeletionTimestamp.AddDate(2000, 0, 0)
	s.SetMirror(leaving)
	step()
	if !slices.Equal(s.deleted, []types.UID{"mirror-1"}) {
		t.Errorf("deleted %v", s.deleted)
	}
	s.RemoveMirror("mirror-1")
	s.SeeMirror(leaving) // a late answer to a write
	if s.mirrors[name] != nil {
		t.Error("a mirror that is gone came back")
	}
	if err := s.Client.Pods(name.Namespace).Delete(t.Context(), name.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	step()
	if s.mirrors[name] == nil {
		t.Error("the mirror was not made again")
	}
	s.expect("run 1")
}

// A mirror whose name another Pod has is tried again, and an event reports it.
func TestMirrorsNameIsTaken(t *testing.T) {
	s := newStation(t)
	s.write("a", text("web", "1"))
	name := nameOf(s.pods[podOf(t, text("web", "1")).UID])
	taken := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}}
	if _, err := s.Client.Pods(name.Namespace).Create(t.Context(), taken, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := s.mirror(t.Context(), name); !apierrors.IsAlreadyExists(errors.Unwrap(err)) ||
		!strings.HasPrefix(fmt.Sprint(err), "another Pod of the API has the name") {
		t.Errorf("got %v", err)
	}
}

// A mirror without a static Pod is deleted.
func TestMirrorOfNothing(t *testing.T) {
	s := newStation(t)
	mirror := mirrorOf(podOf(t, text("web", "1")), "node-uid")
	mirror.UID = "old"
	s.SetMirror(mirror)
	if err := s.mirror(t.Context(), nameOf(mirror)); err != nil || !slices.Equal(s.deleted, []types.UID{"old"}) {
		t.Errorf("deleted %v, %v", s.deleted, err)
	}
}
