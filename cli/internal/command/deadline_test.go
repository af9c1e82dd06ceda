package command

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	"keelson.dev/cli/internal/state"
)

// A command without a deadline could wait without end.
func TestEveryCommandThatWaitsHasATimeout(t *testing.T) {
	none := []string{"keel kubeconfig", "keel simulate", "keel supervise", "keel store migrate", "keel certs list",
		"keel console"}
	all := newRoot().Commands()
	for _, command := range slices.Clone(all) {
		all = append(all, command.Commands()...)
	}
	for _, command := range all {
		if command.HasSubCommands() {
			continue
		}
		if has := command.Flags().Lookup("timeout") != nil; has == slices.Contains(none, command.CommandPath()) {
			t.Errorf("%s: --timeout: %t", command.CommandPath(), has)
		}
	}
}

// keel waits for names as long as --timeout leaves it, neither shorter nor longer.
func TestDNSIsAwaitedUntilTheDeadline(t *testing.T) {
	for _, left := range []time.Duration{time.Second, 29 * time.Second, 31 * time.Second, 5 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			coredns := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "coredns", Namespace: "kube-system"},
				Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{}}}
			ctx, cancel := context.WithTimeout(t.Context(), left)
			defer cancel()
			none := func(context.Context) (map[types.UID]bool, error) { return nil, nil }
			var out bytes.Buffer
			start := time.Now()
			awaitNames(ctx, fake.NewClientset(coredns), none, &out)
			if took := time.Since(start); took != left {
				t.Errorf("with %v left it waited %v", left, took)
			}
			const want = "names do not resolve yet, and the time of --timeout is over: coredns is not available in " +
				"time: Deployment coredns: 0 of 1 available; keel explain deployment coredns --namespace " +
				"kube-system says why\n"
			if !strings.Contains(out.String(), want) {
				t.Errorf("it said %s", out.String())
			}
		})
	}
}

// Who runs out of time is told of what it waited for, and what bounds it.
func TestTimeoutBoundsTheWaitForAnotherKeel(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir()) // of the lock
	programs := t.TempDir()
	for _, name := range []string{"keelson-apiserver", "keelson-scheduler", "keelson-workload-controllers",
		"keelson-podgc"} {
		if err := os.WriteFile(filepath.Join(programs, name), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	unlock, err := state.LockMachine(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	var out, errOut bytes.Buffer
	code := Execute(t.Context(), []string{"up", "--nodes", "0", "--timeout", "10ms", "--programs", programs,
		"--data-dir", t.TempDir()}, &out, &errOut)
	const want = "keel: --timeout: not done after 10ms: waiting for another keel, which is choosing ports and holds "
	if code != 1 || !strings.HasPrefix(errOut.String(), want) || strings.Count(errOut.String(), "\n") != 1 {
		t.Errorf("status %d, %q", code, errOut.String())
	}
}
