package servertest

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	pollInterval = 20 * time.Millisecond
	pollTimeout  = 30 * time.Second
)

// Eventually waits until the condition holds, and fails the test if it does not
// come to. The condition says what it still misses.
func Eventually(t testing.TB, what string, condition func(ctx context.Context) (missing string)) {
	t.Helper()
	missing := ""
	err := wait.PollUntilContextTimeout(t.Context(), pollInterval, pollTimeout, true, func(ctx context.Context) (bool,
		error) {
		missing = condition(ctx)
		return missing == "", nil
	})
	if err != nil {
		t.Fatalf("%s: %s", what, missing)
	}
}

// NotOlderThan lets a list wait until the watch cache has what was written. Much of what the server decides by it reads
// from there, and would not see what a test has just made.
func NotOlderThan(written metav1.Object) metav1.ListOptions {
	return metav1.ListOptions{ResourceVersion: written.GetResourceVersion(),
		ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan}
}
