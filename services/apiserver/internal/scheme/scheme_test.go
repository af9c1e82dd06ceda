package scheme

import (
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/randfill"
)

// TestSecondVersions takes every kind of every version that is not stored as it is to its hub and back, and the hub to
// the version and back: no field is lost between the two.
func TestSecondVersions(t *testing.T) {
	s, err := New()
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for kind, served := range s.AllKnownTypes() {
		internal := schema.GroupVersionKind{Group: kind.Group, Version: runtime.APIVersionInternal, Kind: kind.Kind}
		hub := s.KnownTypes(internal.GroupVersion())[kind.Kind]
		if hub == nil || hub == served || strings.HasPrefix(served.PkgPath(), "k8s.io/apimachinery/") {
			continue
		}
		found++
		t.Run(kind.Version+"."+kind.Kind, func(t *testing.T) {
			roundTrip(t, s, kind, internal)
			roundTrip(t, s, internal, kind)
		})
	}
	if found != 9 {
		t.Errorf("%d kinds have a second version, want Event, HorizontalPodAutoscaler, the lists of both, Eviction, "+
			"and the four of metrics.k8s.io", found)
	}
}

func roundTrip(t *testing.T, s *runtime.Scheme, from, to schema.GroupVersionKind) {
	t.Helper()
	filler := randfill.NewWithSeed(1).NilChance(0.3).NumElements(1, 3).Funcs(
		func(m *metav1.TypeMeta, _ randfill.Continue) { *m = metav1.TypeMeta{} },
		func(f *metav1.FieldsV1, _ randfill.Continue) { *f = metav1.FieldsV1{} },
	)
	fresh := func(kind schema.GroupVersionKind) runtime.Object {
		obj, err := s.New(kind)
		if err != nil {
			t.Fatal(err)
		}
		return obj
	}
	for range 200 {
		start, there, back := fresh(from), fresh(to), fresh(from)
		filler.Fill(start)
		if err := s.Convert(start, there, nil); err != nil {
			t.Fatal(err)
		}
		if err := s.Convert(there, back, nil); err != nil {
			t.Fatal(err)
		}
		if !apiequality.Semantic.DeepEqual(start, back) {
			t.Fatalf("%s to %s and back:\n%+v\n%+v", from, to, start, back)
		}
	}
}

// Of a group with two versions each kind is stored in the first that has it, unless the group says otherwise.
func TestVersionsOfGroup(t *testing.T) {
	v1 := version{autoscalingv1.SchemeGroupVersion, autoscalingv1.AddToScheme}
	v2 := version{autoscalingv2.SchemeGroupVersion, autoscalingv2.AddToScheme}
	for _, row := range []struct {
		name   string
		group  group
		stored map[string]runtime.Object // by version
	}{
		{"the first version is stored", group{versions: []version{v2, v1}},
			map[string]runtime.Object{"v2": &autoscalingv2.HorizontalPodAutoscaler{}, "v1": &autoscalingv1.Scale{}}},
		{"a later version is stored", group{versions: []version{v2, v1},
			hubs: map[string]runtime.Object{"HorizontalPodAutoscaler": &autoscalingv1.HorizontalPodAutoscaler{}}},
			map[string]runtime.Object{"v1": &autoscalingv1.HorizontalPodAutoscaler{}}},
	} {
		t.Run(row.name, func(t *testing.T) {
			s, err := newScheme([]group{groups[0], row.group})
			if err != nil {
				t.Fatal(err)
			}
			want := []schema.GroupVersion{autoscalingv2.SchemeGroupVersion, autoscalingv1.SchemeGroupVersion}
			if got := s.PrioritizedVersionsForGroup(v1.Group); !slices.Equal(got, want) {
				t.Errorf("versions %v, want %v", got, want)
			}
			for version, hub := range row.stored {
				got, err := StorageVersion(s, v1.Group, hub)
				if err != nil || got.Version != version {
					t.Errorf("a %T is stored in %s, %v, want %s", hub, got, err, version)
				}
				kind := reflect.TypeOf(hub).Elem()
				internal := schema.GroupVersion{Group: v1.Group, Version: runtime.APIVersionInternal}
				if got := s.KnownTypes(internal)[kind.Name()]; got != kind {
					t.Errorf("%s is handled as %s, want %s", kind.Name(), got, kind)
				}
			}
			if _, err := StorageVersion(s, v1.Group, &corev1.Pod{}); err == nil {
				t.Error("a Pod has a version of this group to be stored in")
			}
		})
	}
}

func TestOptions(t *testing.T) {
	s, err := New()
	if err != nil {
		t.Fatal(err)
	}
	instant := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	rows := []struct {
		query string
		got   runtime.Object
		want  runtime.Object
	}{
		{"container=c&stdin=true&stdout=1&tty=false&command=ls&command=-l", &corev1.PodExecOptions{},
			&corev1.PodExecOptions{Container: "c", Stdin: true, Stdout: true, Command: []string{"ls", "-l"}}},
		{"container=c&stderr=true&tty=true", &corev1.PodAttachOptions{}, &corev1.PodAttachOptions{Container: "c",
			Stderr: true, TTY: true}},
		{
			"follow=true&previous=true&timestamps=true&tailLines=5&limitBytes=10&sinceSeconds=60&sinceTime=2026" +
				"-01-02T03:04:05Z",
			&corev1.PodLogOptions{},
			&corev1.PodLogOptions{Follow: true, Previous: true, Timestamps: true, TailLines: ptr.To(int64(5)),
				LimitBytes: ptr.To(int64(10)), SinceSeconds: ptr.To(int64(60)), SinceTime: &instant}},
		{"ports=80&ports=443", &corev1.PodPortForwardOptions{}, &corev1.PodPortForwardOptions{Ports: []int32{80, 443}}},
		{"path=/a/b", &corev1.NodeProxyOptions{}, &corev1.NodeProxyOptions{Path: "/a/b"}},
		{"", &corev1.PodLogOptions{}, &corev1.PodLogOptions{}},
	}
	for _, row := range rows {
		values, _ := url.ParseQuery(row.query)
		if err := s.Convert(&values, row.got, nil); err != nil || !apiequality.Semantic.DeepEqual(row.got, row.want) {
			t.Errorf("%s: %+v, %v, want %+v", row.query, row.got, err, row.want)
		}
	}
	for query, want := range map[string]string{"tailLines=many": "tailLines", "sinceTime=yesterday": "sinceTime",
		"limitBytes=1.5": "limitBytes"} {
		values, _ := url.ParseQuery(query)
		if err := s.Convert(&values, &corev1.PodLogOptions{}, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error that names %s", query, err, want)
		}
	}
}
