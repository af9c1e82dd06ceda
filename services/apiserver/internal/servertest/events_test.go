package servertest_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/services/apiserver/internal/servertest"
)

// Events have no watch cache: lists, pages and watches of them come from the store, and are what they are of all kinds.
func testEventWatch(t *testing.T, s *servertest.Server) {
	ctx := t.Context()
	ns := s.Namespace(t, "eventwatch")
	client := s.Client.CoreV1().Events(ns)
	create := func(name, reason string) *corev1.Event {
		t.Helper()
		e, err := client.Create(ctx, &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: name}, Reason: reason,
			InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: ns, Name: "p"}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatalf("creating %s: %v", name, err)
		}
		return e
	}
	first := create("first", "Before")
	create("other", "Before")
	page, err := client.List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil || len(page.Items) != 1 || page.Continue == "" {
		t.Fatalf("the first page: %+v, %v", page, err)
	}
	create("late", "Before")
	rest, err := client.List(ctx, metav1.ListOptions{Continue: page.Continue})
	if err != nil || len(rest.Items) != 1 || rest.ResourceVersion != page.ResourceVersion {
		t.Errorf("the rest of it: %d of version %s, %v, want 1 of %s", len(rest.Items), rest.ResourceVersion, err,
			page.ResourceVersion)
	}
	for version, want := range map[string]int{"": 3, "0": 3, first.ResourceVersion: 3} {
		if list, err := client.List(ctx, metav1.ListOptions{ResourceVersion: version}); err != nil ||
			len(list.Items) != want {
			t.Errorf("listing from version %q: %d, %v, want %d", version, len(list.Items), err, want)
		}
	}
	seen := func(options metav1.ListOptions, act func(), want ...string) {
		t.Helper()
		w, err := client.Watch(ctx, options)
		if err != nil {
			t.Fatalf("watching: %v", err)
		}
		defer w.Stop()
		act()
		for _, want := range want {
			kind, event := next(t, w)
			if got := kind + " " + event.Object.(*corev1.Event).Name; !strings.HasPrefix(got, want) {
				t.Errorf("watching with %+v: %s, want %s", options, got, want)
			}
		}
	}
	from := metav1.ListOptions{ResourceVersion: first.ResourceVersion, FieldSelector: "reason=Now"}
	life := []string{"ADDED now", "MODIFIED now", "DELETED now", "ADDED gone", "DELETED gone"}
	seen(from, func() {
		now := create("now", "Now")
		now.Message = "changed"
		now, _ = client.Update(ctx, now, metav1.UpdateOptions{})
		now.Reason = "Later"
		if _, err := client.Update(ctx, now, metav1.UpdateOptions{}); err != nil {
			t.Errorf("updating: %v", err)
		}
		create("gone", "Now")
		if err := client.Delete(ctx, "gone", metav1.DeleteOptions{}); err != nil {
			t.Errorf("deleting: %v", err)
		}
	}, life...)
	seen(from, func() {}, life...)
	seen(metav1.ListOptions{SendInitialEvents: ptr.To(true), AllowWatchBookmarks: true,
		ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan}, func() {}, "ADDED first", "ADDED late",
		"ADDED now", "ADDED other", "BOOKMARK")
	metrics, err := s.Client.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		t.Fatalf("reading the metrics: %v", err)
	}
	for resource, want := range map[string]bool{"configmaps": true, "events": false} {
		line := `watch_cache_resource_version{group="",resource="` + resource + `"}`
		if strings.Contains(string(metrics), line) != want {
			t.Errorf("a watch cache of %s: %v, want %v", resource, !want, want)
		}
	}
}
