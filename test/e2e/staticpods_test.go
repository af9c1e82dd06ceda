package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/kit/podview"
	"keelson.dev/test/mesh"
	"keelson.dev/test/mesh/processes"
	"keelson.dev/test/scenario"
)

// TestStaticPods runs Pods from a node's folder: they are seen in the API, which cannot end or change them, and live,
// change and go while it is away.
//
// POD-064 POD-065 POD-066 POD-067 POD-068 POD-069 SET-161 SET-162
func TestStaticPods(t *testing.T) {
	m := processes.New(t, 1)
	s := staticPods{World: scenario.In(t, m), mesh: m, node: m.Nodes()[0], folder: t.TempDir(), journals: t.TempDir()}
	must(t, os.Chmod(s.journals, 0o777))
	m.Restart(t, mesh.NodeAgent, "--pod-manifest-path="+s.folder)
	s.write("web", "v1")
	first := s.expectMirror("web")
	s.cannotBeEnded(first)
	s.survivesItsAgent(first)
	s.survivesItsFailpoints()
	s.livesWithoutAPI(first)
	s.remove("web")
	s.awaitJournal("web", "start v1", "start v1", "stop v1", "start v2", "stop v2")
	s.awaitNoMirror("web")
	expectNothingLeft(t, m)
}

// staticPods is a world with a node that has a folder of manifests. Each Pod notes its starts and stops in a journal.
type staticPods struct {
	*scenario.World
	mesh                   *processes.Mesh
	node, folder, journals string
}

// write puts a manifest into the place of the one of the name, at once.
func (s staticPods) write(name, version string) {
	s.Helper()
	manifest := strings.NewReplacer("NAMESPACE", s.Namespace, "NAME", name, "VERSION", version, "IMAGE",
		scenario.Server, "JOURNALS", s.journals).Replace(`
apiVersion: v1
kind: Pod
metadata: {name: NAME, namespace: NAMESPACE, labels: {app: NAME}}
spec:
  containers:
  - name: main
    image: IMAGE
    command:
    - sh
    - -c
    - |
      echo start VERSION >> /journals/NAME
      while ! test -e /journals/die-NAME; do sleep 0.2; done
      rm /journals/die-NAME
      exit 3
    lifecycle: {preStop: {exec: {command: [sh, -c, "echo stop VERSION >> /journals/NAME"]}}}
    volumeMounts: [{name: journals, mountPath: /journals}]
  volumes: [{name: journals, hostPath: {path: JOURNALS, type: Directory}}]
`)
	must(s, os.WriteFile(filepath.Join(s.folder, "."+name), []byte(manifest), 0o600))
	must(s, os.Rename(filepath.Join(s.folder, "."+name), filepath.Join(s.folder, name+".yaml")))
}

func (s staticPods) remove(name string) {
	s.Helper()
	must(s, os.Remove(filepath.Join(s.folder, name+".yaml")))
}

// awaitJournal waits until a Pod has noted exactly these lines.
func (s staticPods) awaitJournal(name string, lines ...string) {
	s.Helper()
	s.Await(fmt.Sprintf("%q to be noted by %s", lines, name), func() scenario.Answer {
		data, err := os.ReadFile(filepath.Join(s.journals, name))
		if err != nil {
			return scenario.Saw(err.Error())
		}
		if got := strings.TrimSpace(string(data)); got != strings.Join(lines, "\n") {
			return scenario.Sawf("%q", got)
		}
		return ""
	})
}

// mirror returns the Pod of the API that shows a static Pod; an error says that there is none.
func (s staticPods) mirror(name string) (*corev1.Pod, error) {
	return s.Client.CoreV1().Pods(s.Namespace).Get(s.Context(), name+"-"+s.node, metav1.GetOptions{})
}

// awaitMirror waits until the API shows the static Pod ready, by another mirror than the one before.
func (s staticPods) awaitMirror(name string, before types.UID) (mirror *corev1.Pod) {
	s.Helper()
	s.Await("a mirror of "+name, func() scenario.Answer {
		var err error
		if mirror, err = s.mirror(name); err != nil {
			return scenario.Saw(err.Error())
		}
		if mirror.UID == before || !podview.IsReady(mirror) {
			return scenario.Sawf("%s: %+v", mirror.UID, mirror.Status)
		}
		return ""
	})
	return mirror
}

func (s staticPods) awaitNoMirror(name string) {
	s.Helper()
	s.Await("no mirror of "+name, func() scenario.Answer {
		if mirror, err := s.mirror(name); err == nil {
			return scenario.Sawf("%s: %+v", mirror.UID, mirror.Status)
		}
		return ""
	})
}

// expectMirror waits for the mirror of a static Pod and checks what clients know one by.
func (s staticPods) expectMirror(name string) *corev1.Pod {
	s.Helper()
	mirror := s.awaitMirror(name, "")
	node, err := s.Client.CoreV1().Nodes().Get(s.Context(), s.node, metav1.GetOptions{})
	must(s, err)
	a := mirror.Annotations
	if mirror.Spec.NodeName != s.node || a["kubernetes.io/config.source"] != "file" ||
		a["kubernetes.io/config.hash"] == "" || a["kubernetes.io/config.mirror"] != a["kubernetes.io/config.hash"] {
		s.Errorf("the mirror is on %q with %v", mirror.Spec.NodeName, a)
	}
	if o := mirror.OwnerReferences; len(o) != 1 || o[0].Kind != "Node" || o[0].UID != node.UID {
		s.Errorf("the mirror belongs to %v, want the Node %s", o, node.UID)
	}
	if drained := s.Kubectl("drain", s.node, "--dry-run=server"); strings.Contains(drained, mirror.Name) {
		s.Errorf("kubectl drain would move a static Pod: %s", drained)
	}
	if logs := s.TryKubectl("", "logs", mirror.Name); logs.Code != 0 {
		s.Errorf("no logs of a static Pod: %+v", logs)
	}
	return mirror
}

// cannotBeEnded deletes and edits the mirror: the container is the same afterwards, and the mirror is made again.
func (s staticPods) cannotBeEnded(mirror *corev1.Pod) {
	s.Helper()
	s.Kubectl("label", "pod", mirror.Name, "edited=yes")
	s.Kubectl("set", "image", "pod/"+mirror.Name, "main="+scenario.HelloV1)
	s.Kubectl("delete", "pod", mirror.Name, "--wait=false")
	s.expectSame(mirror, s.awaitMirror("web", mirror.UID))
	s.awaitJournal("web", "start v1")
}

// expectSame compares what two mirrors say of the container.
func (s staticPods) expectSame(before, after *corev1.Pod) {
	s.Helper()
	a, b := before.Status.ContainerStatuses[0], after.Status.ContainerStatuses[0]
	if a.ContainerID != b.ContainerID || a.RestartCount != b.RestartCount {
		s.Errorf("the container was %s (%d restarts) and is %s (%d)", a.ContainerID, a.RestartCount, b.ContainerID,
			b.RestartCount)
	}
}

// survivesItsAgent kills the agent: the next one takes the container over.
func (s staticPods) survivesItsAgent(mirror *corev1.Pod) {
	s.Helper()
	s.mesh.StopNode(s, s.node)
	s.mesh.StartNode(s, s.node)
	s.write("other", "v1")
	s.awaitMirror("other", "") // the new agent is at work
	s.expectSame(mirror, s.awaitMirror("web", ""))
	s.awaitJournal("web", "start v1")
}

// survivesItsFailpoints kills the agent right before and after each write of its own and to the API. The next one has
// started each Pod once, but for a start that was cut off, and shows it by one mirror.
func (s staticPods) survivesItsFailpoints() {
	s.Helper()
	for i, failpoint := range []string{"staticpod.save.before", "staticpod.save.after", "mirror.create.before",
		"mirror.create.after"} {
		name := fmt.Sprint("doomed-", i)
		killAt(s.World, s.mesh, mesh.NodeAgent, "nodeagent/"+failpoint+"=crash",
			func() string { s.write(name, "v1"); return "" })
		s.mesh.StartNode(s, s.node)
		s.awaitMirror(name, "")
		starts := s.awaitStarts(name)
		s.remove(name)
		s.awaitJournal(name, append(starts, "stop v1")...)
		s.awaitNoMirror(name)
	}
}

// awaitStarts waits until a Pod has noted as many starts as the API reports, and returns its notes. If the death
// of the agent interrupts a start, the runtime gives it up and repeats it: the API reports that as a restart,
// whether the process noted its start or not.
func (s staticPods) awaitStarts(name string) (notes []string) {
	s.Helper()
	s.Await(fmt.Sprintf("%s to have noted its starts", name), func() scenario.Answer {
		mirror, err := s.mirror(name)
		if err != nil {
			return scenario.Saw(err.Error())
		}
		data, err := os.ReadFile(filepath.Join(s.journals, name))
		if err != nil {
			return scenario.Saw(err.Error())
		}
		notes = strings.Split(strings.TrimSpace(string(data)), "\n")
		if len(mirror.Status.ContainerStatuses) != 1 {
			return scenario.Saw("no status of its container")
		}
		restarts := int(mirror.Status.ContainerStatuses[0].RestartCount)
		if len(notes) > restarts+1 || slices.ContainsFunc(notes, func(note string) bool { return note != "start v1" }) {
			return scenario.Sawf("%q, %d restarts", notes, restarts)
		}
		return ""
	})
	return notes
}

// livesWithoutAPI ends the apiserver, then the agent too. A container that ends is started again, a manifest that
// changes ends one Pod and starts another, and a file that goes ends its Pod.
func (s staticPods) livesWithoutAPI(mirror *corev1.Pod) {
	s.Helper()
	before, err := s.mirror("web")
	must(s, err)
	s.mesh.Kill(s, mesh.APIServer)
	must(s, os.WriteFile(filepath.Join(s.journals, "die-web"), nil, 0o600))
	s.awaitJournal("web", "start v1", "start v1")
	s.mesh.StopNode(s, s.node)
	s.mesh.StartNode(s, s.node)
	s.write("third", "v1")
	s.awaitJournal("third", "start v1")
	s.write("web", "v2")
	s.awaitJournal("web", "start v1", "start v1", "stop v1", "start v2")
	s.remove("other")
	s.remove("third")
	s.awaitJournal("other", "start v1", "stop v1")
	s.awaitJournal("third", "start v1", "stop v1")
	s.mesh.Restart(s, mesh.APIServer)
	after := s.awaitMirror("web", before.UID)
	const hash = "kubernetes.io/config.hash"
	if after.Annotations[hash] == mirror.Annotations[hash] {
		s.Errorf("another content has the same hash %s", after.Annotations[hash])
	}
	s.awaitNoMirror("other")
	s.awaitNoMirror("third")
}
