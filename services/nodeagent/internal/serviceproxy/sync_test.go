package serviceproxy

import (
	"testing"

	"keelson.dev/kit/nettest"
	"keelson.dev/services/nodeagent/internal/serviceproxy/plan"
)

// No caller waits for the kernel, and a change that comes while the kernel works is neither lost nor reported as
// done.
func TestChangesWhileTheKernelWorks(t *testing.T) {
	nettest.Own(t)
	p := newProxy(t, "keelson-test-services")
	p.put(newService())
	if !p.Report("ns", "web").Programmed {
		t.Fatal("a Service is not programmed")
	}
	p.changed("ns/web")
	w, ok := p.decide()
	if !ok || w.whole {
		t.Fatalf("a change is not decided on: %+v", w.batch)
	}
	must(t, p.write(w))
	if p.Report("ns", "web").Programmed {
		t.Error("a Service is programmed before the work is done")
	}
	p.changed("ns/web")
	p.SetNode(plan.Node{Name: "here", Zone: "z2"})
	p.commit(w)
	if p.Report("ns", "web").Programmed || !p.freshness.Progress().PendingSince.Equal(w.begun) {
		t.Error("what has changed meanwhile is said to be done")
	}
	if w, ok = p.decide(); !ok || !w.whole || w.node.Zone != "z2" {
		t.Errorf("what has changed meanwhile is lost: %+v of zone %q", w.batch, w.node.Zone)
	}
	p.sync()
	if !p.Report("ns", "web").Programmed || !p.freshness.Progress().PendingSince.IsZero() {
		t.Error("something is left")
	}
}

// Where the kernel refuses a change, all is written next.
func TestRefusedByTheKernel(t *testing.T) {
	nettest.Own(t)
	p := newProxy(t, "keelson-test-services")
	p.put(newService())
	must(t, Remove(p.Table))
	changed := newService()
	changed.Spec.ClusterIPs = changed.Spec.ClusterIPs[:1]
	must(t, p.Services.GetStore().Add(changed))
	p.changed("ns/web")
	if err := p.Sync(); err == nil {
		t.Fatal("a change of a table that is not there is written")
	}
	if got := p.Report("ns", "web"); got.Programmed || len(got.Problems) != 1 {
		t.Errorf("a change that failed: %+v", got)
	}
	p.sync()
	if got := p.Report("ns", "web"); !got.Programmed || len(got.Problems) != 0 || !p.kernel.Exists() {
		t.Errorf("after all was written: %+v", got)
	}
}
