package servertest_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"

	"keelson.dev/services/apiserver/internal/servertest"
)

const eventTimeout = 20 * time.Second

// next is the next event, as "TYPE name".
func next(t *testing.T, w watch.Interface) (string, watch.Event) {
	t.Helper()
	select {
	case event, ok := <-w.ResultChan():
		if !ok {
			t.Fatal("the watch ended")
		}
		if c, ok := event.Object.(*corev1.ConfigMap); ok {
			return string(event.Type) + " " + c.Name, event
		}
		return string(event.Type), event
	case <-time.After(eventTimeout):
		t.Fatal("no event")
	}
	return "", watch.Event{}
}

func testWatch(t *testing.T, s *servertest.Server) {
	ctx := t.Context()
	client := s.Client.CoreV1().ConfigMaps(s.Namespace(t, "watch"))
	list, err := client.List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatalf("listing: %v", err)
	}
	options := metav1.ListOptions{ResourceVersion: list.ResourceVersion, LabelSelector: "watched=yes"}
	w, err := client.Watch(ctx, options)
	if err != nil {
		t.Fatalf("watching: %v", err)
	}
	defer w.Stop()
	create(t, client, configMap("other", nil))
	a := configMap("a", nil)
	a.Labels = map[string]string{"watched": "yes"}
	a = create(t, client, a)
	if got, _ := next(t, w); got != "ADDED a" {
		t.Errorf("first event: %s", got)
	}
	a.Data = map[string]string{"k": "v"}
	if a, err = client.Update(ctx, a, metav1.UpdateOptions{}); err != nil {
		t.Fatalf("updating: %v", err)
	}
	if got, event := next(t, w); got != "MODIFIED a" ||
		event.Object.(*corev1.ConfigMap).ResourceVersion != a.ResourceVersion {
		t.Errorf("second event: %s %v, want MODIFIED a at %s", got, event.Object, a.ResourceVersion)
	}
	// What the selector no longer matches is gone for this watcher.
	a.Labels = nil
	if _, err := client.Update(ctx, a, metav1.UpdateOptions{}); err != nil {
		t.Fatalf("updating: %v", err)
	}
	if got, _ := next(t, w); got != "DELETED a" {
		t.Errorf("third event: %s", got)
	}
	// A second watch from the same version sees the same history.
	again, err := client.Watch(ctx, options)
	if err != nil {
		t.Fatalf("resuming: %v", err)
	}
	defer again.Stop()
	for _, want := range []string{"ADDED a", "MODIFIED a", "DELETED a"} {
		if got, _ := next(t, again); got != want {
			t.Errorf("resumed: %s, want %s", got, want)
		}
	}
}

// testWatchList is how informers start: the state as events, then a bookmark.
func testWatchList(t *testing.T, s *servertest.Server) {
	client := s.Client.CoreV1().ConfigMaps(s.Namespace(t, "watchlist"))
	create(t, client, configMap("a", nil))
	w, err := client.Watch(t.Context(), metav1.ListOptions{
		SendInitialEvents: ptr.To(true), AllowWatchBookmarks: true,
		ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	})
	if err != nil {
		t.Fatalf("watching: %v", err)
	}
	defer w.Stop()
	if got, _ := next(t, w); got != "ADDED a" {
		t.Errorf("first event: %s", got)
	}
	got, event := next(t, w)
	bookmark, ok := event.Object.(*corev1.ConfigMap)
	if !ok || !strings.HasPrefix(got, "BOOKMARK") ||
		bookmark.Annotations[metav1.InitialEventsAnnotationKey] != "true" || bookmark.ResourceVersion == "" {
		t.Errorf("after the state: %s %v, want the bookmark that ends it", got, event.Object)
	}
	create(t, client, configMap("b", nil))
	if got, _ := next(t, w); got != "ADDED b" {
		t.Errorf("after the bookmark: %s", got)
	}
}

// testWatchProgress is how a watcher that sees no event learns how far the store has come, so that it can go on from
// there.
func testWatchProgress(t *testing.T, s *servertest.Server) {
	client := s.Client.CoreV1().ConfigMaps(s.Namespace(t, "watchprogress"))
	list, err := client.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatalf("listing: %v", err)
	}
	// The server tells it each minute, and before the watch ends by itself.
	w, err := client.Watch(t.Context(), metav1.ListOptions{
		ResourceVersion: list.ResourceVersion, LabelSelector: "no=such", AllowWatchBookmarks: true,
		TimeoutSeconds: ptr.To[int64](4),
	})
	if err != nil {
		t.Fatalf("watching: %v", err)
	}
	defer w.Stop()
	unseen := create(t, client, configMap("a", nil))
	got, event := next(t, w)
	bookmark, ok := event.Object.(*corev1.ConfigMap)
	if !ok || !strings.HasPrefix(got, "BOOKMARK") {
		t.Fatalf("without events: %s, want a bookmark", got)
	}
	if newer, err := resourceversion.CompareResourceVersion(bookmark.ResourceVersion,
		unseen.ResourceVersion); err != nil || newer < 0 {
		t.Errorf("the bookmark says %s after %s was written, %v", bookmark.ResourceVersion, unseen.ResourceVersion, err)
	}
}

// DEP-223: kubectl waits for the end of one object by its name.
func testSelectors(t *testing.T, s *servertest.Server) {
	ns := s.Namespace(t, "selectors")
	client := s.Client.CoreV1().ConfigMaps(ns)
	for name, tier := range map[string]string{"a": "x", "b": "y", "c": ""} {
		c := configMap(name, nil)
		if tier != "" {
			c.Labels = map[string]string{"tier": tier}
		}
		create(t, client, c)
	}
	for selector, want := range map[string]string{
		"tier=x":            "a",
		"tier in (x,y)":     "a b",
		"tier notin (x)":    "b c",
		"!tier":             "c",
		"tier,tier!=x":      "b",
		"tier=x,tier=y":     "",
		"tier in (x),!nope": "a",
	} {
		list, err := client.List(t.Context(), metav1.ListOptions{LabelSelector: selector})
		if err != nil || names(list) != want {
			t.Errorf("%q selects %q, %v, want %q", selector, names(list), err, want)
		}
	}
	for selector, want := range map[string]string{"metadata.name=b": "b", "metadata.name!=b,metadata.namespace=" +
		ns: "a c"} {
		list, err := s.Client.CoreV1().ConfigMaps("").List(t.Context(), metav1.ListOptions{FieldSelector: selector,
			LabelSelector: "tier!=kube"})
		got := ""
		for _, c := range list.Items {
			if c.Namespace == ns {
				got = strings.TrimSpace(got + " " + c.Name)
			}
		}
		if err != nil || got != want {
			t.Errorf("%q selects %q, %v, want %q", selector, got, err, want)
		}
	}
}

// A list of an exact version shows what has been deleted since, and nothing that came later.
func testExactVersion(t *testing.T, s *servertest.Server) {
	client := s.Client.CoreV1().ConfigMaps(s.Namespace(t, "exact"))
	create(t, client, configMap("a", nil))
	before := create(t, client, configMap("b", nil)).ResourceVersion
	create(t, client, configMap("c", nil))
	if err := client.Delete(t.Context(), "b", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	list, err := client.List(t.Context(), metav1.ListOptions{ResourceVersion: before,
		ResourceVersionMatch: metav1.ResourceVersionMatchExact})
	if err != nil || names(list) != "a b" || list.ResourceVersion != before {
		t.Errorf("the list of version %s holds %q of %s, %v", before, names(list), list.ResourceVersion, err)
	}
}

func names(list *corev1.ConfigMapList) string {
	var out []string
	for _, c := range list.Items {
		out = append(out, c.Name)
	}
	return strings.Join(out, " ")
}
