package servertest_test

import (
	"context"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"keelson.dev/services/apiserver/inproc"
	"keelson.dev/services/apiserver/internal/servertest"
)

// TestLongRunningLimit: a client that has as many watches as one may is refused the next. It may do anything else, and
// so may all other clients; a watch that is closed makes room.
func TestLongRunningLimit(t *testing.T) {
	const limit = 3
	s := servertest.Start(t, func(c *inproc.Config) { c.MaxLongRunningPerClient = limit })
	client := s.As(t, servertest.Admin).CoreV1().ConfigMaps("default")
	open := func(ctx context.Context) (watch.Interface, error) { return client.Watch(ctx, metav1.ListOptions{}) }
	first, end := context.WithCancel(t.Context())
	defer end()
	opened := 0
	for ctx := first; opened < limit; ctx = t.Context() {
		if _, err := open(ctx); err != nil {
			t.Fatalf("watch %d of %d: %v", opened+1, limit, err)
		}
		opened++
	}
	_, err := open(t.Context())
	if !apierrors.IsTooManyRequests(err) || !strings.Contains(err.Error(), "admin has 3 watches and other lasting "+
		"requests open, as many as one may have (--max-long-running-requests-per-client): close some") {
		t.Errorf("one watch more: %v", err)
	}
	if _, err := client.List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("a list of the same client: %v", err)
	}
	if _, err := s.As(t, "ann").CoreV1().ConfigMaps("default").Watch(t.Context(), metav1.ListOptions{}); !apierrors.
		IsForbidden(err) {
		t.Errorf("another client is told %v, want what it may", err)
	}
	end()
	servertest.Eventually(t, "a watch after one was closed", func(ctx context.Context) string {
		if _, err := open(t.Context()); err != nil {
			return err.Error()
		}
		return ""
	})
}
