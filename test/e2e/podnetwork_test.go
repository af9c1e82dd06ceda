package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/kit/conditions"
	"keelson.dev/kit/podroute"
	"keelson.dev/kit/podview"
	"keelson.dev/kit/subprocess"
	"keelson.dev/test/mesh"
	"keelson.dev/test/mesh/processes"
	"keelson.dev/test/scenario"
)

// newcomer is the second node of a mesh, which joins again. Processes that it starts run as long as the whole test.
type newcomer struct {
	*scenario.World
	whole testing.TB
	mesh  *processes.Mesh
	name  string
}

// joinsAnew lets the second node join again: first while nothing gives out ranges for Pods, then with a network of Pods
// that others keep, and leaves Services to another proxy for a while. It ends with the network of others.
func joinsAnew(t *testing.T, m *processes.Mesh) {
	n := newcomer{scenario.In(t, m), t, m, m.Nodes()[1]}
	n.run("near", m.Nodes()[0], "")
	n.Kubectl("wait", "--for=condition=Ready", "pod/near", "--timeout=60s")
	t.Run("WaitsForItsRange", func(t *testing.T) { n.on(t).waitsForItsRange() })
	t.Run("NetworkOfOthers", func(t *testing.T) { n.on(t).networkOfOthers() })
	t.Run("ServicesOfOthers", func(t *testing.T) { n.on(t).servicesOfOthers() })
}

func (n newcomer) on(t *testing.T) newcomer {
	world := *n.World
	world.TB = t
	n.World = &world
	return n
}

// waitsForItsRange has the node join while nothing gives it a range for its Pods. The configuration of its network is
// still there from before, so that it is ready: the condition of the network alone keeps Pods away until the range
// comes.
func (n newcomer) waitsForItsRange() {
	n.leave()
	must(n, subprocess.Stop(n.Context(), n.mesh.Of(n, mesh.WorkloadControllers)[0], 10*time.Second))
	n.mesh.StartNode(n.whole, n.name)
	n.await("Ready=True KubeletReady: kubelet is posting ready status",
		"NetworkUnavailable=True NoRouteCreated: the Node has no podCIDR yet",
		"taints=node.kubernetes.io/network-unavailable:NoSchedule")
	n.run("chosen", "", "nodeSelector: {kubernetes.io/hostname: "+n.name+"}")
	n.Await("the scheduler to keep the Pod from the node without a network", func() scenario.Answer {
		c := podview.Condition(n.pod("chosen"), corev1.PodScheduled)
		if c == nil || c.Reason != corev1.PodReasonUnschedulable ||
			!strings.Contains(c.Message, "1 node(s) had untolerated taint(s)") {
			return scenario.Sawf("%+v", c)
		}
		return ""
	})
	n.mesh.Restart(n.whole, mesh.WorkloadControllers)
	n.await("Ready=True KubeletReady: kubelet is posting ready status",
		"NetworkUnavailable=False RouteCreated: the network of Pods is there", "taints=")
	n.meet("chosen")
	n.Kubectl("delete", "pod", "chosen", "--wait")
}

// networkOfOthers has the node join with --pod-network=none and without a configuration of the network, as one on which
// another network is installed later.
func (n newcomer) networkOfOthers() {
	agent := n.agent()
	configs := processes.Argument(agent, "--cni-config-dir")
	n.leave()
	n.clear(configs, processes.Argument(agent, "--pod-bridge"))
	n.mesh.StartNodeWith(n.whole, n.name, "--pod-network=none")
	n.await("Ready=False KubeletNotReady: container runtime network not ready: .*cni plugin not initialized",
		"NetworkUnavailable=none",
		"taints=node.kubernetes.io/not-ready:NoExecute node.kubernetes.io/not-ready:NoSchedule")
	n.run("on-node", n.name, "hostNetwork: true")
	n.run("theirs", n.name, "")
	n.Kubectl("wait", "--for=condition=Ready", "pod/on-node", "--timeout=60s")
	if pod := n.pod("theirs"); pod.Status.PodIP != "" || podview.IsReady(pod) {
		n.Errorf("without a network the Pod has the address %q: %+v", pod.Status.PodIP, pod.Status.Conditions)
	}
	n.installTheirs(configs)
	n.await("Ready=True KubeletReady: kubelet is posting ready status", "NetworkUnavailable=none", "taints=")
	n.meet("theirs")
	inside, _ := secondNode(n, n.mesh)
	_, err := inside.LinkByName(processes.Argument(agent, "--pod-bridge"))
	if !errors.As(err, &netlink.LinkNotFoundError{}) {
		n.Errorf("the agent has a bridge of its own where others keep the network: %v", err)
	}
	if files, err := os.ReadDir(configs); err != nil || len(files) != 1 {
		n.Errorf("the configurations are %v, %v, want that of others alone", files, err)
	}
}

// servicesOfOthers has the node's agent start with --service-proxy=none, as where another proxy takes its place, and
// then carry Services again. Nothing else carries them here, and the fence keeps the other node from it.
func (n newcomer) servicesOfOthers() {
	n.run("asking", n.name, "")
	n.Kubectl("wait", "--for=condition=Ready", "pod/asking", "--timeout=60s")
	n.Kubectl("expose", "pod", "near", "--port=80", "--target-port=8080")
	service := n.Kubectl("get", "service", "near", "--output=jsonpath={.spec.clusterIP}")
	n.answered("asking", service, "near")
	table := processes.Argument(n.agent(), "--service-proxy-table")
	if !slices.Contains(n.tables(), table) {
		n.Fatalf("the node has the tables %v, none of them %s", n.tables(), table)
	}

	n.mesh.StopNode(n, n.name)
	n.mesh.StartNodeWith(n.whole, n.name, "--service-proxy=none")
	n.Await("nobody to get an answer at "+service, func() scenario.Answer {
		r := n.TryKubectl("", "exec", "asking", "--", "requests", "-w", "1", "http://"+service+"/hostname")
		if r.Stdout != "1 failed: no answer in time\n" {
			return scenario.Saw(r.Stdout + r.Stderr)
		}
		return ""
	})
	if tables := n.tables(); slices.Contains(tables, table) {
		n.Errorf("the node has the tables %v with --service-proxy=none", tables)
	}
	n.answered("asking", n.pod("near").Status.PodIP+":8080", "near")
	n.answered("near", service, "near")
	n.explained("node-1: has programmed it since .*", "node-2: runs no service proxy of Keelson's")

	n.mesh.StopNode(n, n.name)
	n.mesh.StartNodeWith(n.whole, n.name, "--service-proxy=nftables")
	n.answered("asking", service, "near")
	n.explained("node-1: has programmed it since .*", "node-2: has programmed it since .*")
}

// tables are the names of the firewall tables of the node.
func (n newcomer) tables() (names []string) {
	n.Helper()
	inside, err := netns.GetFromPath(filepath.Join(n.mesh.DataDir, "netns", n.name))
	must(n, err)
	defer func() { _ = inside.Close() }()
	conn, err := nftables.New(nftables.WithNetNSFd(int(inside)))
	must(n, err)
	tables, err := conn.ListTables()
	must(n, err)
	for _, table := range tables {
		names = append(names, table.Name)
	}
	return names
}

// explained waits until keel says of the nodes, in the order of their names, what they have of the Service near.
func (n newcomer) explained(nodes ...string) {
	n.Helper()
	want := regexp.MustCompile(`\nnodes:\n  ` + strings.Join(nodes, `\n  `) + `\n$`)
	n.Await("keel explain service near", func() scenario.Answer {
		said, err := n.mesh.Keel(n.Context(), "explain", "-n", n.Namespace, "service", "near")
		if err != nil || !want.MatchString(said) {
			return scenario.Sawf("%v, want %s of\n%s", err, want, said)
		}
		return ""
	})
}

// leave ends the node's agent and deletes the Node.
func (n newcomer) leave() {
	n.Helper()
	n.mesh.StopNode(n, n.name)
	n.Kubectl("delete", "node", n.name)
}

// clear takes away what the agent has made of the network of Pods.
func (n newcomer) clear(configs, bridge string) {
	n.Helper()
	files, err := filepath.Glob(filepath.Join(configs, "*"))
	if err != nil || len(files) != 1 {
		n.Fatalf("the configurations are %v, %v, want the agent's alone", files, err)
	}
	must(n, os.Remove(files[0]))
	inside, _ := secondNode(n, n.mesh)
	link, err := inside.LinkByName(bridge)
	if err != nil {
		n.Fatalf("the bridge %s: %v", bridge, err)
	}
	must(n, inside.LinkDel(link))
	routes, err := inside.RouteListFiltered(netlink.FAMILY_V4, &netlink.Route{Protocol: podroute.Protocol},
		netlink.RT_FILTER_PROTOCOL)
	must(n, err)
	for _, route := range routes {
		must(n, inside.RouteDel(&route))
	}
}

// installTheirs does what another network does on a node: it leads to the other node's Pods and writes a configuration
// for the node's range.
func (n newcomer) installTheirs(configs string) {
	n.Helper()
	other := n.node(n.mesh.Nodes()[0])
	to, err := netlink.ParseIPNet(other.Spec.PodCIDR)
	if err != nil {
		n.Fatalf("the range of the other node: %v", err)
	}
	inside, link := secondNode(n, n.mesh)
	must(n, inside.RouteAdd(&netlink.Route{LinkIndex: link.Attrs().Index, Dst: to, Gw: internalIP(other)}))
	n.configureTheirs(configs)
}

// configureTheirs writes a configuration of another network for the node's range.
func (n newcomer) configureTheirs(configs string) {
	n.Helper()
	subnet := ""
	n.Await("a range for the node", func() scenario.Answer {
		if subnet = n.node(n.name).Spec.PodCIDR; subnet == "" {
			return "none"
		}
		return ""
	})
	type object = map[string]any
	text, err := json.Marshal(object{"cniVersion": "1.0.0", "name": "theirs", "plugins": []object{{
		"type": "bridge", "bridge": "theirs0", "isGateway": true, "hairpinMode": true,
		"ipam": object{"type": "host-local", "dataDir": filepath.Join(n.mesh.DataDir, "theirs"),
			"ranges": [][]object{{{"subnet": subnet}}}, "routes": []object{{"dst": "0.0.0.0/0"}}},
	}}})
	must(n, err)
	must(n, os.WriteFile(filepath.Join(configs, "20-theirs.conflist"), text, 0o600))
}

func internalIP(node *corev1.Node) net.IP {
	for _, address := range node.Status.Addresses {
		if address.Type == corev1.NodeInternalIP {
			return net.ParseIP(address.Address)
		}
	}
	return nil
}

// run makes a Pod that answers with its name and can ask others.
func (n newcomer) run(name, node, more string) {
	n.Helper()
	n.KubectlWith(fmt.Sprintf(`apiVersion: v1
kind: Pod
metadata: {name: %[1]s, labels: {app: %[1]s}}
spec:
  nodeName: %[2]q
  %[3]s
  terminationGracePeriodSeconds: 1
  containers: [{name: main, image: %[4]s}]
`, name, node, more, scenario.Server), "apply", "-f", "-")
}

// meet has the Pod of the other node and a Pod of this one ask each other, by address and by a Service.
func (n newcomer) meet(name string) {
	n.Helper()
	n.Kubectl("wait", "--for=condition=Ready", "pod/"+name, "--timeout=60s")
	n.Kubectl("expose", "pod", name, "--port=80", "--target-port=8080")
	service := n.Kubectl("get", "service", name, "--output=jsonpath={.spec.clusterIP}")
	for _, c := range []struct{ from, to, by string }{
		{"near", n.pod(name).Status.PodIP + ":8080", name},
		{name, n.pod("near").Status.PodIP + ":8080", "near"},
		{"near", service, name},
		{name, service, name},
	} {
		n.answered(c.from, c.to, c.by)
	}
}

// answered waits until a Pod gets all answers of an address from one other.
func (n newcomer) answered(from, to, by string) {
	n.Helper()
	n.Await(from+" to be answered by "+by+" at "+to, func() scenario.Answer {
		r := n.TryKubectl("", "exec", from, "--", "requests", "-n", "5", "http://"+to+"/hostname")
		if r.Stdout != "5 "+by+"\n" {
			return scenario.Saw(r.Stdout + r.Stderr)
		}
		return ""
	})
}

// await waits until the Node says what these expressions match, of its conditions Ready and NetworkUnavailable and of
// its taints.
func (n newcomer) await(wants ...string) {
	n.Helper()
	want := regexp.MustCompile("^" + strings.Join(wants, "; ") + "$")
	n.Await("the node to say "+want.String(), func() scenario.Answer {
		node, err := n.Client.CoreV1().Nodes().Get(n.Context(), n.name, metav1.GetOptions{})
		if err != nil {
			return scenario.Saw(err.Error())
		}
		var said []string
		for _, kind := range []corev1.NodeConditionType{corev1.NodeReady, corev1.NodeNetworkUnavailable} {
			c := conditions.Node.Find(node.Status.Conditions, kind)
			if c == nil {
				said = append(said, string(kind)+"=none")
			} else {
				said = append(said, fmt.Sprintf("%s=%s %s: %s", kind, c.Status, c.Reason, c.Message))
			}
		}
		var taints []string
		for _, taint := range node.Spec.Taints {
			taints = append(taints, taint.Key+":"+string(taint.Effect))
		}
		slices.Sort(taints)
		text := strings.Join(append(said, "taints="+strings.Join(taints, " ")), "; ")
		if !want.MatchString(text) {
			return scenario.Saw(text)
		}
		return ""
	})
}

func (n newcomer) node(name string) *corev1.Node {
	n.Helper()
	node, err := n.Client.CoreV1().Nodes().Get(n.Context(), name, metav1.GetOptions{})
	if err != nil {
		n.Fatal(err)
	}
	return node
}

func (n newcomer) pod(name string) *corev1.Pod {
	n.Helper()
	pod, err := n.Client.CoreV1().Pods(n.Namespace).Get(n.Context(), name, metav1.GetOptions{})
	if err != nil {
		n.Fatal(err)
	}
	return pod
}

// agent is the process of the node's agent.
func (n newcomer) agent() subprocess.Process {
	n.Helper()
	all := n.mesh.Of(n, mesh.NodeAgent)
	at := slices.IndexFunc(all, func(p subprocess.Process) bool {
		return processes.Argument(p, "--node-name") == n.name
	})
	if at < 0 {
		n.Fatalf("%s has no agent", n.name)
	}
	return all[at]
}
