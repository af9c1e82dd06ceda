package e2e

import (
	"strings"
	"testing"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"

	"keelson.dev/kit/nettest"
	"keelson.dev/test/mesh/processes"
	"keelson.dev/test/scenario"
)

// TestExternalCNIPlugin runs a mesh that leaves Pods' network and Services to others from its start. Pods run once
// another CNI plugin is configured, and nothing of the mesh is in the kernel's firewall.
func TestExternalCNIPlugin(t *testing.T) {
	before, tables := nettest.Standing(t), firewallTables(t)
	m := processes.New(t, 1, "--pod-network=none", "--service-proxy=none")
	n := newcomer{scenario.In(t, m), t, m, m.Nodes()[0]}
	configs := processes.Argument(n.agent(), "--cni-config-dir")
	out, err := m.Keel(t.Context(), "up", "--dns=none")
	for _, want := range []string{"Pods start once others have written the configuration of their network",
		strings.Replace(configs, n.name, "NODE", 1)} {
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("keel up does not say %q: %v\n%s", want, err, out)
		}
	}
	n.await("Ready=False KubeletNotReady: container runtime network not ready: .*cni plugin not initialized",
		"NetworkUnavailable=none",
		"taints=.*node.kubernetes.io/not-ready:NoSchedule")
	for _, name := range []string{"near", "theirs"} {
		n.run(name, n.name, "")
	}
	n.configureTheirs(configs)
	t.Cleanup(func() { removeTheirs(t) })
	n.await("Ready=True KubeletReady: kubelet is posting ready status", "NetworkUnavailable=none", "taints=")
	n.Kubectl("wait", "--for=condition=Ready", "pod", "--all", "--timeout=60s")
	n.answered("near", n.pod("theirs").Status.PodIP+":8080", "theirs")

	n.Kubectl("expose", "pod", "theirs", "--port=80", "--target-port=8080")
	n.Kubectl("wait", "endpointslice", "--selector=kubernetes.io/service-name=theirs", "--timeout=60s",
		"--for=jsonpath={.endpoints[0].conditions.ready}=true")
	service := n.Kubectl("get", "service", "theirs", "--output=jsonpath={.spec.clusterIP}")
	if r := n.TryKubectl("", "exec", "near", "--", "requests", "-w", "1", "http://"+service+"/hostname"); r.Stdout !=
		"1 failed: no answer in time\n" && !strings.Contains(r.Stdout, "no route to host") {
		t.Errorf("the Service of others answers: %s%s", r.Stdout, r.Stderr)
	}
	if now := without(firewallTables(t), tables); len(now) > 0 {
		t.Errorf("the mesh has made the firewall tables %v", now)
	}
	if got := n.Kubectl("get", "deployments", "--all-namespaces"); strings.Contains(got, "hello") {
		t.Errorf("keel up has started its sample without a network:\n%s", got)
	}
	out, err = m.Keel(t.Context(), "up", "--service-proxy=nftables")
	if err == nil || !strings.Contains(out, "--service-proxy: this data directory has used none from its start") {
		t.Errorf("another proxy later: %v\n%s", err, out)
	}
	n.Kubectl("delete", "pod", "--all", "--wait")
	removeTheirs(t)
	takeDown(t, m, before)
}

// removeTheirs removes the bridge of the other network, which is not the mesh's to remove.
func removeTheirs(t *testing.T) {
	t.Helper()
	if link, err := netlink.LinkByName("theirs0"); err == nil {
		must(t, netlink.LinkDel(link))
	}
}

func firewallTables(t *testing.T) (names []string) {
	t.Helper()
	conn, err := nftables.New()
	must(t, err)
	tables, err := conn.ListTables()
	must(t, err)
	for _, table := range tables {
		names = append(names, table.Name)
	}
	return names
}
