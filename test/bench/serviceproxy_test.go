package bench

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/nftables"
	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"keelson.dev/test/mesh"
	"keelson.dev/test/mesh/processes"
	"keelson.dev/test/scenario"
)

const (
	proxiedServices  = 5000
	proxiedEndpoints = 10 // of each Service, in one EndpointSlice
	proxyChanges     = 100
)

// BenchmarkServiceProxy measures the agent of a real node that carries 5,000 Services with 50,000 endpoints, which
// nothing is behind: from its start until the kernel has all of them, and as one endpoint changes at a time.
func BenchmarkServiceProxy(b *testing.B) {
	m := processes.New(b, 1)
	client := connect(b, m)
	each(b, proxiedServices, func(ctx context.Context, i int) error { return createProxied(ctx, client, i) })
	m.Restart(b, mesh.NodeAgent, "--service-proxy=none")
	awaitTable(b, m, false)
	m.Restart(b, mesh.NodeAgent, "--service-proxy=nftables")
	b.Run("whole", func(b *testing.B) {
		all := newMeter(b, m, mesh.NodeAgent)
		awaitTable(b, m, true)
		all.settle()
		proxy := readProxy(b, m)
		if proxy.services < proxiedServices || proxy.syncs["all"] == 0 {
			b.Fatalf("the node carries %v Services after %v whole syncs", proxy.services, proxy.syncs["all"])
		}
		b.ReportMetric(float64(all.now().sum().Milliseconds()), "nodeagent-cpu-ms")
		b.ReportMetric(all.memoryMiB("VmRSS")[mesh.NodeAgent], "nodeagent-MiB")
		b.ReportMetric(proxy.milliseconds["all"]/proxy.syncs["all"], "sync-ms")
	})
	b.Run("change", func(b *testing.B) {
		all := newMeter(b, m, mesh.NodeAgent)
		all.settle()
		before, used := readProxy(b, m), all.now().sum()
		for i := range proxyChanges {
			changeProxied(b, client, i)
			time.Sleep(pause)
		}
		all.settle()
		used = all.now().sum() - used
		after := readProxy(b, m)
		syncs := after.syncs["change"] - before.syncs["change"]
		if syncs == 0 {
			b.Fatal("no change was carried out")
		}
		b.ReportMetric(float64(used.Microseconds())/1000/proxyChanges, "nodeagent-cpu-ms/change")
		b.ReportMetric((after.milliseconds["change"]-before.milliseconds["change"])/syncs, "sync-ms")
	})
}

// createProxied makes a Service and, by hand, its endpoints.
func createProxied(ctx context.Context, client kubernetes.Interface, i int) error {
	name := fmt.Sprintf("service-%d", i)
	if _, err := client.CoreV1().Services(namespace).Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
	}, metav1.CreateOptions{}); err != nil {
		return err
	}
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: name}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: ptr.To(""), Port: ptr.To[int32](8080)}},
	}
	for e := range proxiedEndpoints {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{proxiedAddress(i, e)}})
	}
	_, err := client.DiscoveryV1().EndpointSlices(namespace).Create(ctx, slice, metav1.CreateOptions{})
	return err
}

// proxiedAddress is of a range that is kept for measurements, so that no machine has it.
func proxiedAddress(service, endpoint int) string {
	n := service*(proxiedEndpoints+1) + endpoint
	return fmt.Sprintf("198.%d.%d.%d", 18+n>>16, n>>8&255, n&255)
}

// changeProxied puts another endpoint in the place of a Service's first.
func changeProxied(b *testing.B, client kubernetes.Interface, i int) {
	b.Helper()
	slices := client.DiscoveryV1().EndpointSlices(namespace)
	slice, err := slices.Get(b.Context(), fmt.Sprintf("service-%d", i), metav1.GetOptions{})
	if err != nil {
		b.Fatal(err)
	}
	slice.Endpoints[0].Addresses = []string{proxiedAddress(i, proxiedEndpoints)}
	if _, err := slices.Update(b.Context(), slice, metav1.UpdateOptions{}); err != nil {
		b.Fatal(err)
	}
}

// awaitTable waits until the firewall has the node's table of Services, or has none.
func awaitTable(b *testing.B, m *processes.Mesh, want bool) {
	b.Helper()
	name := processes.Argument(m.Of(b, mesh.NodeAgent)[0], "--service-proxy-table")
	conn, err := nftables.New()
	if err != nil {
		b.Fatal(err)
	}
	await(b, "the table "+name, func() (string, error) {
		tables, err := conn.ListTables()
		if err != nil {
			return "", err
		}
		there := slices.ContainsFunc(tables, func(t *nftables.Table) bool { return t.Name == name })
		if there == want {
			return "", nil
		}
		return fmt.Sprintf("it is there: %v", there), nil
	})
}

// proxy is what a nodeagent says of the Services that it carries, by whether all were looked at or what had changed.
type proxy struct {
	services            float64
	syncs, milliseconds map[string]float64
}

func readProxy(b *testing.B, m *processes.Mesh) proxy {
	b.Helper()
	families := scenario.MetricsOf(b, m.Admin(), "https://"+statusAddress(m.Of(b, mesh.NodeAgent)[0]))
	p := proxy{syncs: map[string]float64{}, milliseconds: map[string]float64{}}
	each := func(name string, do func(*dto.Metric)) {
		for _, metric := range families["nodeagent_service_proxy_"+name].GetMetric() {
			do(metric)
		}
	}
	each("services", func(metric *dto.Metric) { p.services = metric.GetGauge().GetValue() })
	each("sync_duration_seconds", func(metric *dto.Metric) {
		scope := labelsOf(metric)["scope"]
		p.syncs[scope] = float64(metric.GetHistogram().GetSampleCount())
		p.milliseconds[scope] = 1000 * metric.GetHistogram().GetSampleSum()
	})
	return p
}
