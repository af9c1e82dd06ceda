package servertest_test

import (
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/services/apiserver/inproc"
	"keelson.dev/services/apiserver/internal/servertest"
	"keelson.dev/services/apiserver/internal/storage"
)

// TestAddressesOfAnEarlierVersion: Services from before there were IPAddresses keep their cluster IPs: the first write
// after the start gives each its IPAddress before it takes anything.
func TestAddressesOfAnEarlierVersion(t *testing.T) {
	ctx, dir := t.Context(), filepath.Join(t.TempDir(), "etcd")
	etcd, err := storage.StartEmbedded(ctx, dir, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(etcd.Close)
	external := func(c *inproc.Config) {
		c.Etcd.Servers = []string{"unix://" + filepath.Join(dir, "etcd.sock")}
	}
	service := func(name, ip string) *corev1.Service {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"},
			Spec: corev1.ServiceSpec{ClusterIP: ip, Ports: []corev1.ServicePort{{Port: 80}}}}
	}
	before := servertest.Start(t, external)
	if _, err := before.Client.CoreV1().Services("default").Create(ctx, service("web", "10.96.0.9"),
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	addresses := before.Client.NetworkingV1().IPAddresses()
	if err := addresses.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	after := servertest.Start(t, external)
	_, err = after.Client.CoreV1().Services("default").Create(ctx, service("thief", "10.96.0.9"),
		metav1.CreateOptions{})
	if err == nil || !strings.Contains(err.Error(), "provided IP is already allocated") {
		t.Errorf("somebody else asks for the address: %v", err)
	}
	for _, name := range []string{"10.96.0.1", "10.96.0.9"} {
		if _, err := after.Client.NetworkingV1().IPAddresses().Get(ctx, name, metav1.GetOptions{}); err != nil {
			t.Errorf("after the first write: %v", err)
		}
	}
}
