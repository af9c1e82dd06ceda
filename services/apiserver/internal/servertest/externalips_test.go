package servertest_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/apiserver/inproc"
	"keelson.dev/services/apiserver/internal/servertest"
)

// Where an operator denies external IPs no Service gets any, and one that has some keeps what it has.
func TestDenyServiceExternalIPs(t *testing.T) {
	dir := t.TempDir()
	open := servertest.StartIn(t, dir)
	service := func(name string) *corev1.Service {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ServiceSpec{
			ExternalIPs: []string{"198.51.100.9"}, Ports: []corev1.ServicePort{{Port: 80}}}}
	}
	if _, err := open.Client.CoreV1().Services("default").Create(t.Context(), service("old"),
		metav1.CreateOptions{}); err != nil {
		t.Fatalf("where they are not denied: %v", err)
	}
	if err := open.Stop(); err != nil {
		t.Fatal(err)
	}
	s := servertest.StartIn(t, dir, func(c *inproc.Config) {
		c.EnableAdmissionPlugins = []string{"DenyServiceExternalIPs"}
	})
	services := s.Client.CoreV1().Services("default")
	denied := func(what string, err error) {
		t.Helper()
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(),
			"Use of external IPs is denied by admission control") {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, err := services.Create(t.Context(), service("new"), metav1.CreateOptions{})
	denied("a new Service", err)
	patch := func(body string) error {
		_, err := services.Patch(t.Context(), "old", types.MergePatchType, []byte(body), metav1.PatchOptions{})
		return err
	}
	denied("one more", patch(`{"spec":{"externalIPs":["198.51.100.9","198.51.100.10"]}}`))
	if err := patch(`{"metadata":{"labels":{"a":"b"}}}`); err != nil {
		t.Errorf("a change of something else: %v", err)
	}
	if err := patch(`{"spec":{"externalIPs":null}}`); err != nil {
		t.Errorf("none any more: %v", err)
	}
	denied("the same again", patch(`{"spec":{"externalIPs":["198.51.100.9"]}}`))
}

func TestUnknownAdmissionPlugin(t *testing.T) {
	config := servertest.NewConfig(t, t.TempDir())
	config.EnableAdmissionPlugins = []string{"NodeRestriction", "DenyEverything"}
	refusesToStart(t, config, `--enable-admission-plugins: "DenyEverything" is no admission plugin of this server: `+
		"on by themselves are NamespaceLifecycle, ")
}
