package steps

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientfake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"keelson.dev/services/nodeagent/internal/cgroup"
	"keelson.dev/services/nodeagent/internal/cgroup/cgroupfake"
	"keelson.dev/services/nodeagent/internal/containerconfig"
	"keelson.dev/services/nodeagent/internal/objectcache"
	"keelson.dev/services/nodeagent/internal/podfiles"
	"keelson.dev/services/nodeagent/internal/runtime"
	"keelson.dev/services/nodeagent/internal/userns"
)

// Whether a Pod can have a user namespace depends on the handler of its runtime class, not on the default one; a
// class that was read once is known while the API does not answer.
func TestAbleAsTheHandlerOfTheClass(t *testing.T) {
	client := clientfake.NewClientset(
		&nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "safe"}, Handler: "kata"},
		&nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "old"}, Handler: "runc-1"})
	var down error
	client.PrependReactor("get", "runtimeclasses", func(clienttesting.Action) (bool, apiruntime.Object, error) {
		return down != nil, nil, down
	})
	tree, err := cgroup.NewTree(cgroupfake.New(cgroup.Unified), cgroup.Cgroupfs, "/kubepods", 0)
	if err != nil {
		t.Fatal(err)
	}
	files := podfiles.Root{Dir: t.TempDir(), LogDir: t.TempDir()}
	ranges, err := podfiles.OpenUserRanges(files, userns.Range{First: 1 << 16, Length: 4 << 16})
	if err != nil {
		t.Fatal(err)
	}
	status := runtime.Status{Handlers: []runtime.Handler{{Name: "kata", UserNamespaces: true}, {Name: "runc-1"}}}
	s := New(Config{Files: files, Cgroups: tree, Ranges: ranges, Able: status.Handler, Events: &recorded{},
		Objects: objectcache.New(t.Context(), client, func(types.UID) {})})
	sandbox := func(ctx context.Context, class *string, relies ...func(*corev1.PodSpec)) error {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "u-1"},
			Spec: corev1.PodSpec{RuntimeClassName: class, HostUsers: ptr.To(len(relies) > 0)}}
		for _, change := range relies {
			change(&pod.Spec)
		}
		if err := files.Make(pod); err != nil {
			return err
		}
		_, err := s.Sandbox(ctx, pod, 0)
		return err
	}
	if err := sandbox(t.Context(), nil); !errors.Is(err, containerconfig.ErrUserNamespaces) {
		t.Errorf("by the default handler: %v", err)
	}
	if err := sandbox(t.Context(), ptr.To("old")); !errors.Is(err, containerconfig.ErrUserNamespaces) {
		t.Errorf("by one that is not able to: %v", err)
	}
	for range 2 {
		if err := sandbox(t.Context(), ptr.To("safe")); err != nil {
			t.Errorf("by one that is able to, the API being down %v: %v", down != nil, err)
		}
		down = errors.New("no answer")
	}
	if err := sandbox(t.Context(), ptr.To("unread")); err == nil || !errors.Is(err, down) {
		t.Errorf("of a class that nobody has read: %v", err)
	}
	mounting := func(mode *corev1.RecursiveReadOnlyMode) func(*corev1.PodSpec) {
		return func(s *corev1.PodSpec) {
			s.Containers = []corev1.Container{{VolumeMounts: []corev1.VolumeMount{{RecursiveReadOnly: mode}}}}
		}
	}
	if err := sandbox(t.Context(), ptr.To("unread"), mounting(ptr.To(corev1.RecursiveReadOnlyIfPossible))); err == nil {
		t.Error("nobody knows whether its mounts can be made read-only, and it does not wait")
	}
	for _, mode := range []*corev1.RecursiveReadOnlyMode{nil, ptr.To(corev1.RecursiveReadOnlyDisabled)} {
		if err := sandbox(t.Context(), ptr.To("unread"), mounting(mode)); err != nil {
			t.Errorf("a Pod to which it does not matter waits for the API: %v", err)
		}
	}
}
