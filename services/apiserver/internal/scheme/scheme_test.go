package scheme

import (
	"net/url"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/randfill"
)

// TestEventShapes: no field is lost between the two shapes of an Event.
func TestEventShapes(t *testing.T) {
	s, err := New()
	if err != nil {
		t.Fatal(err)
	}
	filler := randfill.NewWithSeed(1).NilChance(0.3).Funcs(
		func(m *metav1.TypeMeta, _ randfill.Continue) { *m = metav1.TypeMeta{} },
		func(f *metav1.FieldsV1, _ randfill.Continue) { *f = metav1.FieldsV1{} },
	)
	for range 200 {
		event := &corev1.Event{}
		filler.Fill(event)
		other := &eventsv1.Event{}
		if err := s.Convert(event, other, nil); err != nil {
			t.Fatal(err)
		}
		back := &corev1.Event{}
		if err := s.Convert(other, back, nil); err != nil {
			t.Fatal(err)
		}
		if !apiequality.Semantic.DeepEqual(event, back) {
			t.Fatalf("there and back:\n%+v\n%+v", event, back)
		}
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
		{"container=c&stderr=true&tty=true", &corev1.PodAttachOptions{}, &corev1.PodAttachOptions{Container: "c", Stderr: true, TTY: true}},
		{"follow=true&previous=true&timestamps=true&tailLines=5&limitBytes=10&sinceSeconds=60&sinceTime=2026-01-02T03:04:05Z", &corev1.PodLogOptions{},
			&corev1.PodLogOptions{Follow: true, Previous: true, Timestamps: true, TailLines: ptr.To(int64(5)), LimitBytes: ptr.To(int64(10)), SinceSeconds: ptr.To(int64(60)), SinceTime: &instant}},
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
	for query, want := range map[string]string{"tailLines=many": "tailLines", "sinceTime=yesterday": "sinceTime", "limitBytes=1.5": "limitBytes"} {
		values, _ := url.ParseQuery(query)
		if err := s.Convert(&values, &corev1.PodLogOptions{}, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error that names %s", query, err, want)
		}
	}
}
