package view

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"keelson.dev/cli/internal/mesh"
	"keelson.dev/cli/internal/plan"
	"keelson.dev/cli/internal/state"
	introspectionv1 "keelson.dev/proto/keelson/introspection/v1"
)

func TestMilliCPU(t *testing.T) {
	for _, r := range []struct {
		used, within time.Duration
		want         int64
	}{
		{time.Second, time.Second, 1000}, {2 * time.Second, time.Second, 2000}, {0, time.Second, 0},
		{1500 * time.Microsecond, time.Second, 2}, {1499 * time.Microsecond, time.Second, 1}, {time.Second, 0, 0},
	} {
		if got := milliCPU(r.used, r.within); got != r.want {
			t.Errorf("%s in %s: %d, want %d", r.used, r.within, got, r.want)
		}
	}
}

func TestWaiting(t *testing.T) {
	entries, oldest := waiting([]*introspectionv1.Queue{{Depth: 2, Oldest: durationpb.New(time.Second)}, {},
		{Depth: 3, Oldest: durationpb.New(time.Millisecond)}})
	if entries != 5 || oldest != time.Second {
		t.Errorf("%d entries wait, the first for %s", entries, oldest)
	}
}

// measured is an object of the API of metrics.
func measured(text string) unstructured.Unstructured {
	u := unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(text), &u.Object); err != nil {
		panic(err)
	}
	return u
}

func TestNodeUsages(t *testing.T) {
	large := node("a", "True", "")
	large.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"),
		corev1.ResourceMemory: resource.MustParse("1Gi")}
	got := nodeUsages([]corev1.Node{large, node("b", "True", ""), node("c", "True", "")}, []unstructured.Unstructured{
		measured(`{"metadata":{"name":"b"},"usage":{"cpu":"x"}}`), measured(`{"metadata":{"name":"other"}}`),
		measured(`{"metadata":{"name":"a"},"usage":{"cpu":"1500m","memory":"512Mi"}}`)})
	want := []NodeUsage{
		{Name: "a", MilliCPU: 1500, AllocatableCPU: 2000, Memory: 512 << 20, AllocatableMemory: 1 << 30}, {Name: "b"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestPodUsages(t *testing.T) {
	got := podUsages([]unstructured.Unstructured{
		measured(`{"metadata":{"name":"p","namespace":"n"},"containers":[{"usage":{"cpu":"1","memory":"1Ki"}},
			{"usage":{"cpu":"250m","memory":"1"}},3]}`), measured(`{"metadata":{"name":"q"}}`)})
	want := []PodUsage{{Namespace: "n", Name: "p", MilliCPU: 1250, Memory: 1025}, {Name: "q"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// What uses most comes first, and only so many Pods are shown.
func TestWriteTop(t *testing.T) {
	top := Top{
		Daemons: []DaemonUsage{{Name: "podgc", MilliCPU: 3, Memory: 20 << 20, Threads: 9},
			{Name: "apiserver", MilliCPU: 120, Memory: 145 << 20, Threads: 12, Queued: 4,
				Oldest: 1500 * time.Millisecond},
			{Name: "scheduler", MilliCPU: 3, Memory: 30 << 20, Threads: 10}},
		Nodes: []NodeUsage{{Name: "a"}, {Name: "b", MilliCPU: 500, AllocatableCPU: 2000, Memory: 1 << 29,
			AllocatableMemory: 1 << 30}},
		Pods:     []PodUsage{{"n", "idle", 0, 1 << 20}, {"n", "busy", 900, 1 << 20}, {"n", "large", 0, 2 << 20}},
		Problems: []string{"podgc does not answer: refused"},
	}
	top.sort(2)
	var out bytes.Buffer
	top.WriteTable(&out, now)
	const want = `DAEMON      CPU    MEMORY   THREADS   QUEUED   OLDEST
apiserver   120m   145Mi    12        4        1.5s
scheduler   3m     30Mi     10        0        0s
podgc       3m     20Mi     9         0        0s

NODE   CPU    CPU%   MEMORY   MEMORY%
b      500m   25%    512Mi    50%
a      0m     -      0Mi      -

NAMESPACE   POD     CPU    MEMORY
n           busy    900m   1Mi
n           large   0m     2Mi
podgc does not answer: refused
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
	out.Reset()
	if err := top.WriteJSON(&out); err != nil || !strings.Contains(out.String(), `"oldestNanoseconds": 1500000000`) {
		t.Errorf("got %s, %v", out.String(), err)
	}
}

// Of a mesh that is down, one line says so.
func TestMeasureAMeshThatIsDown(t *testing.T) {
	m := &mesh.Mesh{Layout: plan.Layout{Dir: "/data"}, State: &state.State{}}
	var out bytes.Buffer
	Measure(t.Context(), m, time.Hour, 10).WriteTable(&out, now)
	if got := out.String(); got != "the mesh is down: keel up starts it\n" {
		t.Errorf("got %q", got)
	}
}
