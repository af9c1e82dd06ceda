package servertest_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/services/apiserver/inproc"
	"keelson.dev/services/apiserver/internal/servertest"
)

// TestEtcdServers: two servers share an etcd that runs elsewhere; what one writes the other shows.
func TestEtcdServers(t *testing.T) {
	external := servertest.SharedStore(t)
	one, two := servertest.Start(t, external), servertest.Start(t, external)
	create(t, one.Client.CoreV1().ConfigMaps("default"), configMap("a", map[string]string{"k": "v"}))
	w, err := two.Client.CoreV1().ConfigMaps("default").Watch(t.Context(),
		metav1.ListOptions{FieldSelector: "metadata.name=a"})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	if got, _ := next(t, w); got != "ADDED a" {
		t.Errorf("the other server's first event: %s", got)
	}
	if c, err := two.Client.CoreV1().ConfigMaps("default").Get(t.Context(), "a", metav1.GetOptions{}); err != nil ||
		c.Data["k"] != "v" {
		t.Errorf("the other server has %v, %v", c, err)
	}
}

// TestEndpointsOfTheServers: the Service of the apiserver leads to each that serves, and to none that has stopped.
func TestEndpointsOfTheServers(t *testing.T) {
	shared := servertest.SharedStore(t)
	external := func(address string) func(*inproc.Config) {
		return func(c *inproc.Config) {
			shared(c)
			c.AdvertiseAddress = address
		}
	}
	one := servertest.Start(t, external("192.0.2.1"))
	two := servertest.NewConfig(t, t.TempDir())
	external("192.0.2.2")(two)
	second, err := inproc.Start(t.Context(), two, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	addresses := func(want string) {
		t.Helper()
		servertest.Eventually(t, "the Endpoints", func(ctx context.Context) string {
			e, err := one.Client.CoreV1().Endpoints("default").Get(ctx, "kubernetes", metav1.GetOptions{})
			if err != nil {
				return err.Error()
			}
			var got []string
			for _, subset := range e.Subsets {
				for _, address := range subset.Addresses {
					got = append(got, address.IP)
				}
			}
			slices.Sort(got)
			list, err := one.Client.DiscoveryV1().EndpointSlices("default").List(ctx,
				metav1.ListOptions{LabelSelector: "kubernetes.io/service-name=kubernetes"})
			if err != nil {
				return err.Error()
			}
			var sliced []string
			for _, slice := range list.Items {
				for _, endpoint := range slice.Endpoints {
					sliced = append(sliced, endpoint.Addresses...)
				}
			}
			slices.Sort(sliced)
			if strings.Join(got, " ") != want || strings.Join(sliced, " ") != want {
				return fmt.Sprintf("%v, in slices %v, want %s", got, sliced, want)
			}
			return ""
		})
	}
	addresses("192.0.2.1 192.0.2.2")
	if err := second.Stop(); err != nil {
		t.Errorf("stopping: %v", err)
	}
	addresses("192.0.2.1")
}
