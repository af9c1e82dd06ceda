package resourcetest

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/services/apiserver/internal/servertest"
)

// A namespace's ranges complete its Pods and refuse those that are out of them, by the effective request and limit.
func testLimitRange(t *testing.T, s *servertest.Server) {
	ctx := t.Context()
	ns := s.Namespace(t, "limits")
	gibibytes := func(amount string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(amount)}
	}
	must[*corev1.LimitRange](t, "creating")(s.Client.CoreV1().LimitRanges(ns).Create(ctx, &corev1.LimitRange{
		ObjectMeta: metav1.ObjectMeta{Name: "small"},
		Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{
			{Type: corev1.LimitTypeContainer, Max: gibibytes("2Gi"), DefaultRequest: gibibytes("1Gi")},
			{Type: corev1.LimitTypePod, Max: gibibytes("3Gi")},
		}},
	}, metav1.CreateOptions{}))
	pods := s.Client.CoreV1().Pods(ns)
	servertest.Eventually(t, "Pods get the defaults", func(ctx context.Context) string {
		pod := newPod("")
		pod.GenerateName = "p-"
		created, err := pods.Create(ctx, pod, metav1.CreateOptions{})
		if err != nil {
			return err.Error()
		}
		got := created.Spec.Containers[0].Resources
		if got.Requests.Memory().String() != "1Gi" || got.Limits.Memory().String() != "2Gi" {
			return "the container asks for " + got.String()
		}
		return ""
	})
	// POD-232: a sidecar counts beside the containers.
	always := corev1.ContainerRestartPolicyAlways
	beside := newPod("beside")
	beside.Spec.InitContainers = []corev1.Container{{Name: "sidecar", Image: "a", RestartPolicy: &always}}
	_, err := pods.Create(ctx, beside, metav1.CreateOptions{})
	if !apierrors.IsForbidden(err) ||
		!strings.Contains(err.Error(), "maximum memory usage per Pod is 3Gi, but limit is 4Gi") {
		t.Errorf("POD-232: two of 2Gi in a Pod of 3Gi: %v", err)
	}
}
