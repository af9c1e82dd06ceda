package simulate

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"keelson.dev/services/scheduler/internal/config"
	"keelson.dev/services/scheduler/internal/feed"
)

// A snapshot has every kind that the scheduler watches: each of feed.Kinds has its source here.
func TestASnapshotHasWhatTheSchedulerWatches(t *testing.T) {
	known := strings.Split(kindNames(), ", ")
	for _, object := range feed.Kinds() {
		if kind := reflect.TypeOf(object).Elem().Name(); !slices.Contains(known, kind) {
			t.Errorf("a %s is no part of a snapshot", kind)
		} else if _, err := newMesh([]runtime.Object{object}); err != nil {
			t.Error(err)
		}
	}
}

func gangOf(second string) string {
	pod := func(name, cpu string) string {
		return `---
apiVersion: v1
kind: Pod
metadata: {name: ` + name + `}
spec:
  schedulingGroup: {podGroupName: train}
  priorityClassName: urgent
  containers: [{name: c, image: x, resources: {requests: {cpu: ` + cpu + `}}}]
`
	}
	return `apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {name: train}
spec: {priorityClassName: urgent, schedulingPolicy: {gang: {minCount: 2}}}
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: urgent}
value: 7
` + pod("first", "1") + pod("second", second)
}

// The Pods of a PodGroup in a manifest fit together or not at all.
func TestGangsOfManifests(t *testing.T) {
	for second, want := range map[string]int{"1": 2, "9": 0} {
		r, err := answer([]runtime.Object{node("n", "a", "4")}, question{documents: documents(t, gangOf(second)),
			namespace: "default"}, config.Default())
		if err != nil {
			t.Fatal(err)
		}
		fit := 0
		for _, w := range r.Workloads {
			fit += w.Fit
		}
		if fit != want || len(r.Ignored) > 0 {
			t.Errorf("with a second Pod of %s cpu %d fit, want %d: %q, %q ignored", second, fit, want, lines(r),
				r.Ignored)
		}
	}
	manifest := strings.Replace(gangOf("1"), "kind: PriorityClass\nmetadata: {name: urgent}",
		"kind: PriorityClass\nmetadata: {name: other}", 1)
	_, err := answer([]runtime.Object{node("n", "a", "4")}, question{documents: documents(t, manifest),
		namespace: "default"}, config.Default())
	if err == nil || !strings.Contains(err.Error(), `there is no PriorityClass "urgent"`) {
		t.Errorf("a class that is not there: %v", err)
	}
}

// A snapshot says which nodes have storage enough for the claims of a manifest.
func TestStorageOfASnapshot(t *testing.T) {
	mesh := []runtime.Object{node("a", "x", "4"), node("b", "y", "4"),
		&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}, Provisioner: "d",
			VolumeBindingMode: new(storagev1.VolumeBindingWaitForFirstConsumer)},
		&storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: "d"}, Spec: storagev1.CSIDriverSpec{
			StorageCapacity: new(true)}},
		&storagev1.CSIStorageCapacity{ObjectMeta: metav1.ObjectMeta{Namespace: "csi", Name: "y"},
			StorageClassName: "fast", Capacity: new(resource.MustParse("1Gi")),
			NodeTopology: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelTopologyZone: "y"}}}}
	set := func(name, size string) string {
		return "---\n" + `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: ` + name + `}, spec: {
  selector: {matchLabels: {app: db}}, template: {metadata: {labels: {app: db}}, spec: {containers: [{name: c}]}},
  volumeClaimTemplates: [{metadata: {name: data}, spec: {storageClassName: fast, accessModes: [ReadWriteOnce],
    resources: {requests: {storage: ` + size + `}}}}]}}` + "\n"
	}
	r, err := answer(mesh, question{documents: documents(t, set("fits", "1Gi")+set("large", "2Gi")),
		namespace: "default"}, config.Default())
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"manifest StatefulSet fits 1/1 b", "manifest StatefulSet large 0/1 -: 0/2 nodes are available: " +
		"2 node(s) did not have enough free storage. preemption: 0/2 nodes are available: 2 Preemption is not " +
		"helpful for scheduling."}
	if got := lines(r); !slices.Equal(got, want) {
		t.Errorf("says\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
