package serviceproxy

import (
	"net/netip"
	"testing"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

	"keelson.dev/services/nodeagent/internal/serviceproxy/servicetest"
)

// The proxy knows all Nodes that there are before it carries anything, and follows them.
func TestNodesAreFollowed(t *testing.T) {
	client := fake.NewClientset(servicetest.NodeAt("there", 10250, "192.0.2.1"))
	factory := informers.NewSharedInformerFactory(client, 0)
	core := factory.Core().V1()
	p := New(Config{Services: core.Services().Informer(), Slices: factory.Discovery().V1().EndpointSlices().Informer(),
		Nodes: core.Nodes().Informer(), Log: zap.NewNop()})
	known, err := p.follow()
	if err != nil {
		t.Fatal(err)
	}
	factory.Start(t.Context().Done())
	if !cache.WaitForCacheSync(t.Context().Done(), known...) {
		t.Fatal("the Nodes are never known")
	}
	there := func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		_, is := p.peers.At(netip.MustParseAddr("192.0.2.1"))
		return is
	}
	if !there() {
		t.Error("the proxy is to begin and does not know a Node")
	}
	if err := client.CoreV1().Nodes().Delete(t.Context(), "there", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if !cache.WaitForCacheSync(t.Context().Done(), func() bool { return !there() }) {
		t.Error("a Node that has gone is known for ever")
	}
}
