package servertest_test

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"

	"keelson.dev/services/apiserver/internal/servertest"
)

// Who reads a list page by page while the store forgets how it began is refused the next page, and told by which token
// the rest can be read as it is now. So it is with the watch cache and without.
func TestPagesOutliveCompaction(t *testing.T) {
	shared := servertest.SharedStore(t)
	s := servertest.Start(t, shared)
	store := servertest.OpenRawStore(t, shared)
	ns := s.Namespace(t, "pages")
	lists := map[string]func(metav1.ListOptions) (runtime.Object, error){
		"ConfigMaps": func(o metav1.ListOptions) (runtime.Object, error) {
			return s.Client.CoreV1().ConfigMaps(ns).List(t.Context(), o)
		},
		"Events": func(o metav1.ListOptions) (runtime.Object, error) {
			return s.Client.CoreV1().Events(ns).List(t.Context(), o)
		},
	}
	for _, name := range []string{"a", "b", "c", "d"} {
		createPaged(t, s.Client, ns, name)
	}
	first := map[string]metav1.ListInterface{}
	for kind, list := range lists {
		page, err := list(metav1.ListOptions{Limit: 2})
		if got := pageNames(t, page); err != nil || got != "a b" {
			t.Fatalf("%s: the first page is %q, %v", kind, got, err)
		}
		first[kind], _ = meta.ListAccessor(page)
	}
	createPaged(t, s.Client, ns, "e")
	store.Compact(t)

	for kind, list := range lists {
		_, err := list(metav1.ListOptions{Limit: 2, Continue: first[kind].GetContinue()})
		var status *apierrors.StatusError
		if !errors.As(err, &status) || !apierrors.IsResourceExpired(err) || status.ErrStatus.Continue == "" {
			t.Errorf("%s: the next page: %v, want that the list has expired, and a token", kind, err)
			continue
		}
		rest, err := list(metav1.ListOptions{Continue: status.ErrStatus.Continue})
		if got := pageNames(t, rest); err != nil || got != "c d e" {
			t.Errorf("%s: by that token the rest is %q, %v, want c d e", kind, got, err)
			continue
		}
		if now, _ := meta.ListAccessor(rest); now.GetResourceVersion() == first[kind].GetResourceVersion() {
			t.Errorf("%s: the rest says that it is as old as the first page", kind)
		}
	}
}

// createPaged makes an object of each of the kinds.
func createPaged(t *testing.T, client kubernetes.Interface, namespace, name string) {
	t.Helper()
	create(t, client.CoreV1().ConfigMaps(namespace), configMap(name, nil))
	event := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		InvolvedObject: corev1.ObjectReference{Namespace: namespace}}
	if _, err := client.CoreV1().Events(namespace).Create(t.Context(), event, metav1.CreateOptions{}); err != nil {
		t.Fatalf("creating the Event %s: %v", name, err)
	}
}

func pageNames(t *testing.T, list runtime.Object) string {
	t.Helper()
	var names []string
	err := meta.EachListItem(list, func(object runtime.Object) error {
		one, err := meta.Accessor(object)
		if err == nil {
			names = append(names, one.GetName())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(names, " ")
}
