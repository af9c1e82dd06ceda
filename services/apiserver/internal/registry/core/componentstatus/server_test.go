package componentstatus_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"keelson.dev/services/apiserver/internal/servertest"
)

// warnings are those that a server has sent.
type warnings struct {
	mu   sync.Mutex // guards sent
	sent []string
}

// HandleWarningHeader implements rest.WarningHandler.
func (w *warnings) HandleWarningHeader(_ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sent = append(w.sent, text)
}

// What the server tells of the components is what their Leases say, and nothing else may be said of them. Who asks is
// told that the API is deprecated.
func TestComponentStatuses(t *testing.T) {
	s := servertest.Start(t)
	config, told := s.ConfigAs(servertest.Admin), &warnings{}
	config.WarningHandler = told
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	components := client.CoreV1().ComponentStatuses()
	says := func(ctx context.Context, options metav1.ListOptions) string {
		list, err := components.List(ctx, options)
		if err != nil {
			return err.Error()
		}
		var all []string
		for _, c := range list.Items {
			all = append(all, fmt.Sprint(c.Name, " ", c.Conditions[0].Type, " ", c.Conditions[0].Status))
		}
		return strings.Join(all, ", ")
	}
	const ill = "controller-manager Healthy False, etcd-0 Healthy True, scheduler Healthy False"
	if got := says(t.Context(), metav1.ListOptions{}); got != ill {
		t.Errorf("without daemons: %s, want %s", got, ill)
	}
	for _, daemon := range []string{"scheduler", "workload-controllers"} {
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: daemon + ".some"},
			Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To("host"), LeaseDurationSeconds: ptr.To(int32(3600)),
				RenewTime: ptr.To(metav1.NewMicroTime(time.Now()))}}
		if _, err := client.CoordinationV1().Leases(metav1.NamespaceSystem).Create(t.Context(), lease,
			metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	const well = "controller-manager Healthy True, etcd-0 Healthy True, scheduler Healthy True"
	servertest.Eventually(t, "all is well", func(ctx context.Context) string {
		if got := says(ctx, metav1.ListOptions{}); got != well {
			return got
		}
		return ""
	})
	if got := says(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=scheduler"}); got !=
		"scheduler Healthy True" {
		t.Errorf("the scheduler alone: %s", got)
	}
	one, err := components.Get(t.Context(), "etcd-0", metav1.GetOptions{})
	if err != nil || one.Name != "etcd-0" || one.Conditions[0].Message != "ok" {
		t.Errorf("one component: %+v, %v", one, err)
	}
	if _, err := components.Get(t.Context(), "kubelet", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a component that there is not: %v", err)
	}
	if _, err := components.Create(t.Context(), &corev1.ComponentStatus{ObjectMeta: metav1.ObjectMeta{Name: "x"}},
		metav1.CreateOptions{}); !apierrors.IsMethodNotSupported(err) {
		t.Errorf("a component that somebody makes: %v", err)
	}
	told.mu.Lock()
	defer told.mu.Unlock()
	if !slices.Contains(told.sent, "v1 ComponentStatus is deprecated in v1.19+") {
		t.Errorf("the warnings were %q", told.sent)
	}
	checkServed(t, client)
}

// checkServed wants what kubectl finds the resource by.
func checkServed(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	list, err := client.Discovery().ServerResourcesForGroupVersion("v1")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range list.APIResources {
		if r.Name != "componentstatuses" {
			continue
		}
		if r.Namespaced || r.SingularName != "componentstatus" || !slices.Equal(r.ShortNames, []string{"cs"}) ||
			!slices.Equal(r.Verbs, []string{"get", "list"}) {
			t.Errorf("it is served as %+v", r)
		}
		return
	}
	t.Error("it is not served")
}
