package explain

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"keelson.dev/kit/pass"
)

// gate is open or not.
type gate bool

func (g gate) IsOpen(types.UID) bool { return bool(g) }

// The decision that acts is asked, and nothing is applied.
func TestExplainer(t *testing.T) {
	reader := fake.NewClientBuilder().WithObjects(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default",
		Name: "web"}}).Build()
	for name, row := range map[string]struct {
		object, want string
		open         gate
		needed       bool
		err          error
	}{
		"decided":       {"web", "waits for nothing: web is decided", true, true, nil},
		"own writes":    {"web", "waits for its cache to show what it has just written", false, true, nil},
		"not its own":   {"web", "leaves web alone", true, false, nil},
		"unreadable":    {"web", "cannot decide: broken", true, true, errors.New("broken")},
		"not there yet": {"other", "", true, true, nil},
	} {
		steps := &pass.Steps[*corev1.Pod, string, string]{
			Reader: reader, New: func() *corev1.Pod { return &corev1.Pod{} }, Gate: row.open,
			Observe: func(_ context.Context, pod *corev1.Pod) (string, bool, error) {
				return pod.Name, row.needed, row.err
			},
			Decide: func(in string) string { return in + " is decided" },
			Apply: func(context.Context, string, string) error {
				t.Errorf("%s: applied", name)
				return nil
			},
		}
		say := func(_, plan string) Account { return Account{Settled: plan} }
		got, known := Explainer(steps, say, func(pod *corev1.Pod) string { return "leaves " + pod.Name + " alone" })(
			t.Context(), "default", row.object)
		if got.Summary != row.want || known != (row.want != "") {
			t.Errorf("%s: %q, %t", name, got.Summary, known)
		}
	}
}
