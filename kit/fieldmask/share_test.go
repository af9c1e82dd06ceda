package fieldmask

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// sharedRule keeps of a Pod what podRule does and its UID and version.
var sharedRule = Rule{Object: &corev1.Pod{}, Resource: "pods",
	Selector: fields.OneTermNotEqualSelector("status.phase", "Failed"), Only: map[string][]string{
		"metadata": {"name", "namespace", "uid", "resourceVersion", "labels", "ownerReferences", "deletionTimestamp"},
		"spec":     {"nodeName", "containers", "tolerations"}, "spec.containers": {"name", "resources"},
		"status": {"phase", "conditions"},
	}, Shared: map[string][]string{
		"metadata": {"namespace", "labels", "ownerReferences"}, "spec": {"containers", "tolerations"},
	}}

// decodeShared decodes an object as the watch of Informers does, and overwrites what it was decoded from.
func decodeShared(t testing.TB, mask *Mask, raw []byte) runtime.Object {
	t.Helper()
	encoded := bytes.Clone(raw)
	object, _, err := objectSerializer{codec, mask}.Decode(encoded, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range encoded {
		encoded[i] = 0xff
	}
	return object
}

// Decoding with shared memory gives the same objects as decoding without, for the first object, for those like it,
// and for others in between.
func TestSharedIsDecodedAlike(t *testing.T) {
	mask := newMask(t, sharedRule)
	for seed := range int64(200) {
		pod := filled(t, corev1.SchemeGroupVersion.WithKind("Pod"), seed).(*corev1.Pod)
		pod.Name = "a"
		for range 2 {
			pod.Name, pod.Spec.NodeName = pod.Name+"a", pod.Spec.NodeName+"n"
			raw, err := runtime.Encode(codec, pod)
			if err != nil {
				t.Fatal(err)
			}
			masked, err := mask.Object(bytes.Clone(raw))
			if err != nil {
				t.Fatal(err)
			}
			want, err := runtime.Decode(codec, masked)
			if err != nil {
				t.Fatal(err)
			}
			got := decodeShared(t, mask, raw)
			got.GetObjectKind().SetGroupVersionKind(want.GetObjectKind().GroupVersionKind())
			if !equality.Semantic.DeepEqual(got, want) {
				t.Fatalf("seed %d:\ngot  %+v\nwant %+v", seed, got, want)
			}
		}
	}
}

// newPod is one of many of a template.
func newPod(name, version, app string) *corev1.Pod {
	yes := true
	return &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: "1", ResourceVersion: version,
			Labels: map[string]string{"app": app}, OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet",
				Name: app, UID: "2", Controller: &yes}}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"cpu": resource.MustParse("1")}}}}},
	}
}

func encodePod(t testing.TB, pod *corev1.Pod) []byte {
	t.Helper()
	raw, err := runtime.Encode(codec, pod)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// Objects that are alike share memory, also when there are more templates than are remembered; others do not.
func TestWhoSharesMemory(t *testing.T) {
	mask := newMask(t, sharedRule)
	of := func(name, app string) (labels, containers uintptr) {
		pod := decodeShared(t, mask, encodePod(t, newPod(name, "1", app))).(*corev1.Pod)
		return reflect.ValueOf(pod.Labels).Pointer(), reflect.ValueOf(pod.Spec.Containers).Pointer()
	}
	labels, containers := of("a", "web")
	if l, c := of("b", "web"); l != labels || c != containers {
		t.Error("a Pod of the same template has its own labels or containers")
	}
	if l, c := of("c", "db"); l == labels || c == containers {
		t.Error("a Pod of another template has the labels or containers of the first")
	}
	known := mask.shared[0]
	for i := range 3 * mostShared {
		of("d", fmt.Sprint("other-", i))
		if l, _ := of("e", "web"); l != labels {
			t.Fatalf("after %d templates the one in use is forgotten", i)
		}
		if n := len(known.recent) + len(known.older); n > 4000 {
			t.Fatalf("%d templates are remembered, want no more than 4000", n)
		}
	}
}

// Objects that are alike do not each take memory again.
func TestSharedCostsOnce(t *testing.T) {
	raw := encodePod(t, newPod("a", "1", "web"))
	cost := func(mask *Mask) float64 {
		encoded := make([]byte, len(raw))
		return testing.AllocsPerRun(100, func() {
			copy(encoded, raw)
			if _, _, err := (objectSerializer{codec, mask}).Decode(encoded, nil, nil); err != nil {
				t.Error(err)
			}
		})
	}
	without := sharedRule
	without.Shared = nil
	if shared, whole := cost(newMask(t, sharedRule)), cost(newMask(t, without)); shared > whole/3 {
		t.Errorf("%v objects are allocated, and %v where nothing is shared", shared, whole)
	}
}

// Damaged bytes are an error, and no panic.
func TestDamagedShared(t *testing.T) {
	mask, raw := newMask(t, sharedRule), encodePod(t, newPod("a", "1", "web"))
	for i := range raw {
		for _, encoded := range [][]byte{bytes.Clone(raw[:i]), slices.Insert(bytes.Clone(raw), i, 0xff)} {
			_, _, _ = objectSerializer{codec, mask}.Decode(encoded, nil, nil)
			_, _, _ = eventSerializer{codec}.Decode(encoded, nil, &metav1.WatchEvent{})
		}
	}
}

// podServer sends what it is given as the events of the first watch of Pods, and nothing in the second.
func podServer(t *testing.T, events [][]byte) *rest.Config {
	t.Helper()
	watches := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/pods" || r.URL.Query().Get("allowWatchBookmarks") != "true" ||
			r.URL.Query().Get("fieldSelector") != "status.phase!=Failed" {
			t.Errorf("the request is %s", r.URL)
		}
		w.Header().Set("Content-Type", watchType)
		if watches++; watches > 1 {
			events = nil
		}
		for _, encoded := range events {
			if _, err := w.Write(framed(encoded)); err != nil {
				t.Error(err)
			}
		}
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Error(err)
		}
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeProtobuf}}
}

// An informer of a kind that shares fields starts with what the watch brings first, and follows every change.
func TestInformers(t *testing.T) {
	bookmark := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{
		ResourceVersion: "4", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}}
	mask := newMask(t, sharedRule)
	config := podServer(t, [][]byte{event(t, "ADDED", newPod("a", "2", "web")),
		event(t, "ADDED", newPod("b", "3", "web")), event(t, "BOOKMARK", bookmark),
		event(t, "MODIFIED", newPod("a", "5", "web")), event(t, "DELETED", newPod("b", "6", "web")),
		event(t, "ERROR", &metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
			Status: metav1.StatusFailure, Code: http.StatusGone, Reason: metav1.StatusReasonExpired})})
	newInformer, err := mask.Informers(config)
	if err != nil {
		t.Fatal(err)
	}
	informer := newInformer(&cache.ListWatch{}, &corev1.Pod{}, 0, cache.Indexers{})
	gone := make(chan *corev1.Pod, 10)
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		DeleteFunc: func(object any) { gone <- object.(*corev1.Pod) }}); err != nil {
		t.Fatal(err)
	}
	go informer.RunWithContext(t.Context())
	select {
	case pod := <-gone:
		if pod.Name != "b" || pod.ResourceVersion != "6" || pod.Labels["app"] != "web" {
			t.Errorf("%+v is gone", pod)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("no Pod goes")
	}
	if !cache.WaitForCacheSync(t.Context().Done(), informer.HasSynced) {
		t.Error("the informer does not know that it has all")
	}
	stored, _, _ := informer.GetStore().GetByKey("default/a")
	if pod, ok := stored.(*corev1.Pod); !ok || pod.ResourceVersion != "5" || pod.Spec.Containers[0].Name != "main" {
		t.Errorf("the store has %+v", stored)
	}
	nodes := newInformer(&cache.ListWatch{}, &corev1.Node{}, 0, cache.Indexers{})
	if nodes.HasSynced() {
		t.Error("an informer of another kind has all without a list")
	}
}

// A client gets a kind without a rule as before.
func TestOthersAreDecodedWhole(t *testing.T) {
	mask := newMask(t, sharedRule)
	for _, k := range kinds() {
		if k.Kind == "Pod" {
			continue
		}
		raw, err := runtime.Encode(codec, filled(t, k, 1))
		if err != nil {
			t.Fatal(err)
		}
		want, err := runtime.Decode(codec, bytes.Clone(raw))
		if err != nil {
			t.Fatal(err)
		}
		if got := decodeShared(t, mask, raw); !equality.Semantic.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, want %+v", k, got, want)
		}
	}
	if _, err := newMask(t).Informers(&rest.Config{}); err != nil {
		t.Errorf("a mask that shares nothing: %v", err)
	}
}
