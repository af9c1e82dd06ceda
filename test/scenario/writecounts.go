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

// DeploymentWriteCounts counts what is written, by kind, while a Deployment's only Pod starts and while it goes.
// docs/explanation/writes.md says which daemon makes each write and why: a change that adds a write must be
// documented there.
func DeploymentWriteCounts(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	journal := watchWrites(w, "pods", "events", "replicasets.apps", "deployments.apps")
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
	mutex sync.Mutex // guards what follows
	lines []string
	// newest are the newest versions of each resource that were seen.
	newest map[string]int64
	// lists are reads of the resources.
	lists map[string]func() (*unstructured.UnstructuredList, error)
}

// writtenVersions are the versions of the groups whose changes are counted.
var writtenVersions = map[string]string{"": "v1", "apps": "v1", "batch": "v1", "policy": "v1",
	"discovery.k8s.io": "v1"}

// watchWrites begins a journal of resources, each named as kubectl does: deployments.apps. The scenario that keeps one
// ends no apiserver, so that one watch of each resource is enough.
func watchWrites(w *World, resources ...string) *writeJournal {
	w.Helper()
	client, err := dynamic.NewForConfig(w.Mesh.Admin())
	if err != nil {
		w.Fatalf("building the client: %v", err)
	}
	j := &writeJournal{newest: map[string]int64{},
		lists: map[string]func() (*unstructured.UnstructuredList, error){}}
	for _, name := range resources {
		resource := schema.ParseGroupResource(name)
		all := client.Resource(resource.WithVersion(writtenVersions[resource.Group])).Namespace(w.Namespace)
		j.lists[name] = func() (*unstructured.UnstructuredList, error) {
			return all.List(w.Context(), metav1.ListOptions{})
		}
		watcher, err := all.Watch(w.Context(), metav1.ListOptions{})
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
	j.newest[resource] = max(j.newest[resource], versionOf(object))
	j.lines = append(j.lines, strings.Join([]string{resource, string(event.Type), object.GetName(), about,
		fmt.Sprint(object.GetDeletionTimestamp(), status)}, " "))
}

// expect waits until nothing is written any more, and wants no more changes since the last call than these. That none
// of the Pods' is missed is asked, too: others may be joined.
func (j *writeJournal) expect(w *World, what string, most map[string]int) {
	w.Helper()
	w.Await("a mesh with nothing left to do", func() Answer {
		if n, _ := WritesIn(w, 2*time.Second); n > 0 {
			return "it writes"
		}
		return ""
	})
	w.Await("the journal to have all that was written", j.behind)
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

// behind says what the watches have not shown yet of what there is.
func (j *writeJournal) behind() Answer {
	for resource, list := range j.lists {
		all, err := list()
		if err != nil {
			return Saw(err.Error())
		}
		j.mutex.Lock()
		newest := j.newest[resource]
		j.mutex.Unlock()
		for i := range all.Items {
			if version := versionOf(&all.Items[i]); version > newest {
				return Sawf("%s of version %d are there, and %d was seen", resource, version, newest)
			}
		}
	}
	return ""
}
