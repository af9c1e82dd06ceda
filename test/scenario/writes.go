package scenario

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"keelson.dev/test/mesh"
)

// Writes counts what is written, by kind, while a Deployment's only Pod starts and while it goes. docs/writes.md says
// by whom and why: who writes more writes it down there.
func Writes(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	journal := w.watchWrites("pods", "events", "replicasets.apps", "deployments.apps")
	w.KubectlWith(web(1, HelloV1, ""), "apply", "-f", "-")
	w.AwaitAvailable("web", 1)
	journal.expect(w, "the start", map[string]int{"pods": 3, "events": 3, "replicasets.apps": 4,
		"deployments.apps": 5})
	w.Kubectl("scale", "deployment", "web", "--replicas=0")
	w.AwaitAvailable("web", 0)
	w.awaitNothing("pods")
	journal.expect(w, "the end", map[string]int{"pods": 2, "events": 2, "replicasets.apps": 4,
		"deployments.apps": 4})
}

// writeJournal writes down each change in a namespace.
type writeJournal struct {
	mutex sync.Mutex // guards lines
	lines []string
}

// writtenVersions are those of the groups whose changes are counted.
var writtenVersions = map[string]string{"": "v1", "apps": "v1", "batch": "v1", "policy": "v1",
	"discovery.k8s.io": "v1"}

// watchWrites begins a journal of resources, each named as kubectl does: deployments.apps. The scenario that keeps one
// ends no apiserver, so that one watch of each resource is enough.
func (w *World) watchWrites(resources ...string) *writeJournal {
	w.Helper()
	client, err := dynamic.NewForConfig(w.Mesh.Admin())
	if err != nil {
		w.Fatalf("building the client: %v", err)
	}
	j := &writeJournal{}
	for _, name := range resources {
		resource := schema.ParseGroupResource(name)
		watcher, err := client.Resource(resource.WithVersion(writtenVersions[resource.Group])).Namespace(w.Namespace).
			Watch(w.Context(), metav1.ListOptions{})
		if err != nil {
			w.Fatalf("watching %s: %v", name, err)
		}
		w.Cleanup(watcher.Stop)
		go func() {
			for event := range watcher.ResultChan() {
				j.note(name, event)
			}
		}()
	}
	return j
}

func (j *writeJournal) note(resource string, event watch.Event) {
	object, ok := event.Object.(*unstructured.Unstructured)
	if !ok || event.Type == watch.Bookmark {
		return
	}
	about, _, _ := unstructured.NestedString(object.Object, "reason")
	status, _, _ := unstructured.NestedMap(object.Object, "status")
	j.mutex.Lock()
	defer j.mutex.Unlock()
	j.lines = append(j.lines, strings.Join([]string{resource, string(event.Type), object.GetName(), about,
		fmt.Sprint(object.GetDeletionTimestamp(), status)}, " "))
}

// expect waits until nothing is written any more, and wants no more changes since the last call than these. That none
// of the Pods' is missed is asked, too: others may be joined.
func (j *writeJournal) expect(w *World, what string, most map[string]int) {
	w.Helper()
	w.Await("a mesh with nothing left to do", func() Answer {
		if n, _ := w.writesIn(2 * time.Second); n > 0 {
			return "it writes"
		}
		return ""
	})
	j.mutex.Lock()
	defer j.mutex.Unlock()
	got := map[string]int{}
	for _, line := range j.lines {
		resource, _, _ := strings.Cut(line, " ")
		got[resource]++
	}
	for resource, want := range most {
		if got[resource] > want || resource == "pods" && got[resource] < want {
			of := slices.DeleteFunc(slices.Clone(j.lines),
				func(l string) bool { return !strings.HasPrefix(l, resource+" ") })
			w.Errorf("%s takes %d writes of %s, want %d:\n%s", what, got[resource], resource, want,
				strings.Join(of, "\n"))
		}
	}
	j.lines = nil
}
