package podnetwork

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/kit/keptport"
)

func prefix(text string) netip.Prefix { return netip.MustParsePrefix(text) }

// at returns a node with addresses; those with a slash are its ranges.
func at(name string, of ...string) Node {
	n := Node{Name: name}
	for _, text := range of {
		if strings.Contains(text, "/") {
			n.Ranges = append(n.Ranges, prefix(text))
		} else {
			n.Addresses = append(n.Addresses, netip.MustParseAddr(text))
		}
	}
	return n
}

func silent(n Node) Node {
	n.Silent = true
	return n
}

// born sets a node's creation time.
func (n Node) born(second int64) Node {
	n.Created = time.Unix(second, 0)
	return n
}

// Ranges are hidden to which networks outside the cluster have no route.
func TestHidden(t *testing.T) {
	for text, want := range map[string]bool{"10.244.1.0/24": true, "203.0.113.0/24": true, "fd00:0:0:1::/64": true,
		"fc00::/64": true, "fdff:ffff:ffff:ffff::/64": true, "fe00::/64": false, "fbff:ffff:ffff:ffff::/64": false,
		"2001:db8::/64": false} {
		own := prefix(text)
		if hidden(own, own.Addr().Is6()) != want || hidden(own, own.Addr().Is4()) {
			t.Errorf("%s: want %t in its family, and not in the other", text, want)
		}
	}
}

func TestOf(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: corev1.NodeSpec{
		PodCIDR: "10.244.1.0/24", PodCIDRs: []string{"10.244.1.0/24", "nonsense", "fd00::/64"}},
		Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{
			{Type: corev1.NodeHostName, Address: "192.0.2.9"}, {Type: corev1.NodeInternalIP, Address: "192.0.2.1"},
			{Type: corev1.NodeExternalIP, Address: "198.51.100.1"}, {Type: corev1.NodeInternalIP,
				Address: "2001:db8::1"}}}}
	if got, want := Of(node), at("a", "10.244.1.0/24", "fd00::/64", "192.0.2.1", "2001:db8::1"); !got.equal(want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestDecide(t *testing.T) {
	cluster := []netip.Prefix{prefix("10.244.0.0/16"), prefix("fd00::/48")}
	own := at("b", "10.244.1.0/24", "192.0.2.2")
	for _, row := range []struct {
		name     string
		own      Node
		others   []Node
		routes   string
		problems string
	}{
		{"alone", own, nil, "[]", "[]"},
		{"two others, in the order of their names", own, []Node{at("c", "10.244.2.0/24", "192.0.2.3"),
			at("a", "10.244.0.0/24", "192.0.2.1")}, "[{10.244.0.0/24 192.0.2.1} {10.244.2.0/24 192.0.2.3}]", "[]"},
		{"itself among them", own, []Node{own}, "[]", "[]"},
		{"one without a range yet", own, []Node{at("a", "192.0.2.1")}, "[]", "[]"},
		{"one without an address", own, []Node{at("a", "10.244.0.0/24")}, "[]",
			"[node a has no InternalIP by which its range 10.244.0.0/24 is reached]"},
		{"one with an address of the other family alone", own, []Node{at("a", "10.244.0.0/24", "2001:db8::1")}, "[]",
			"[node a has no InternalIP by which its range 10.244.0.0/24 is reached]"},
		{"both families", at("b", "10.244.1.0/24", "fd00:0:0:1::/64", "192.0.2.2", "2001:db8::2"),
			[]Node{at("a", "10.244.0.0/24", "fd00::/64", "192.0.2.1", "2001:db8::1")},
			"[{10.244.0.0/24 192.0.2.1} {fd00::/64 2001:db8::1}]", "[]"},
		{"a younger one that has this node's range", own, []Node{at("a", "10.244.1.0/24", "192.0.2.1").born(1)}, "[]",
			"[the range 10.244.1.0/24 of node a overlaps one of node b]"},
		{"a younger one with a part of it", own, []Node{at("a", "10.244.1.128/25", "192.0.2.1").born(1)}, "[]",
			"[the range 10.244.1.128/25 of node a overlaps one of node b]"},
		{"two with one range: the older has it", own, []Node{at("c", "10.244.0.0/24", "192.0.2.3").born(2),
			at("d", "10.244.0.0/24", "192.0.2.4").born(1)}, "[{10.244.0.0/24 192.0.2.4}]",
			"[the range 10.244.0.0/24 of node c overlaps one of node d]"},
		{"two of one age with one range: the first has it", own, []Node{at("d", "10.244.0.0/24", "192.0.2.4"),
			at("c", "10.244.0.0/24", "192.0.2.3")}, "[{10.244.0.0/24 192.0.2.3}]",
			"[the range 10.244.0.0/24 of node d overlaps one of node c]"},
		{"an older one has it without being reached", own, []Node{at("d", "10.244.0.0/24", "192.0.2.4").born(2),
			at("c", "10.244.0.0/24").born(1)}, "[]", "[node c has no InternalIP by which its range 10.244.0.0/24 is " +
			"reached the range 10.244.0.0/24 of node d overlaps one of node c]"},
		{"one of two ranges is an older one's", own, []Node{at("c", "10.244.0.0/24", "192.0.2.3").born(1),
			at("d", "10.244.0.0/24", "10.244.5.0/24", "192.0.2.4").born(2)}, "[{10.244.0.0/24 192.0.2.3}]",
			"[the range 10.244.0.0/24 of node d overlaps one of node c]"},
		{"two at one address: the older is there", own, []Node{at("c", "10.244.0.0/24", "192.0.2.3").born(2),
			at("d", "10.244.2.0/24", "192.0.2.3").born(1)}, "[{10.244.2.0/24 192.0.2.3}]",
			"[the address 192.0.2.3 of node c is that of node d node c has no InternalIP by which its range " +
				"10.244.0.0/24 is reached]"},
		{"two at one address, the older silent", own, []Node{at("c", "10.244.0.0/24", "192.0.2.3").born(2),
			silent(at("d", "10.244.2.0/24", "192.0.2.3").born(1))},
			"[{10.244.0.0/24 192.0.2.3} {10.244.2.0/24 192.0.2.3}]", "[]"},
		{"an older one at this node's address", own.born(2), []Node{at("c", "10.244.0.0/24", "192.0.2.2").born(1)},
			"[]", "[the address 192.0.2.2 of node c is that of node b node c has no InternalIP by which its range " +
				"10.244.0.0/24 is reached]"},
		{"one with a range of elsewhere", own, []Node{at("a", "172.16.0.0/24", "192.0.2.1")}, "[]",
			"[the range 172.16.0.0/24 of node a is not of --cluster-cidr]"},
		{"one with more than the cluster's", own, []Node{at("a", "10.0.0.0/8", "192.0.2.1").born(1)}, "[]",
			"[the range 10.0.0.0/8 of node a overlaps one of node b]"},
	} {
		t.Run(row.name, func(t *testing.T) {
			in := Input{Mode: Routes, Cluster: cluster, Own: row.own, Others: row.others, MTU: 1500}
			before := fmt.Sprint(in)
			plan := Decide(in)
			if fmt.Sprint(plan.Routes) != row.routes || fmt.Sprint(plan.Problems) != row.problems {
				t.Errorf("routes %v, problems %v\nwant %s, %s", plan.Routes, plan.Problems, row.routes, row.problems)
			}
			if plan.MTU != 1500 || plan.Tunnel != nil || !reflect.DeepEqual(plan, Decide(in)) ||
				before != fmt.Sprint(in) {
				t.Errorf("MTU %d, tunnel %v, or the input was changed", plan.MTU, plan.Tunnel)
			}
		})
	}
	if got := Decide(Input{Mode: Routes, Own: at("b", "10.244.1.0/24", "fd00:0:0:1::/64")}).Gateways; fmt.Sprint(got) !=
		"[10.244.1.1/24 fd00:0:0:1::1/64]" {
		t.Errorf("gateways %v", got)
	}
}

// A node whose range belongs to an older one gets no network, regardless of what else is known.
func TestDecideConflict(t *testing.T) {
	cluster := []netip.Prefix{prefix("10.244.0.0/16")}
	for _, mode := range []Mode{Routes, VXLAN} {
		in := Input{
			Mode:    mode,
			Cluster: cluster,
			MTU:     1500,
			Own:     at("b", "10.244.1.0/24", "192.0.2.2").born(2),
			Others: []Node{
				at("c", "10.244.3.0/24", "192.0.2.3").born(1),
				at("a", "10.244.1.0/25", "192.0.2.1").born(1),
			},
		}
		want := Plan{
			Conflict: "the range 10.244.1.0/24 of this node overlaps one of node a, which is older: one of the " +
				"two Nodes must be deleted",
		}
		if plan := Decide(in); !reflect.DeepEqual(plan, want) {
			t.Errorf("%+v, want %+v", plan, want)
		}
	}
}

// A node that claims an older node's range besides one of its own cannot impersonate that node in the tunnel.
func TestDecideTunnelOfAnImpostor(t *testing.T) {
	cluster := []netip.Prefix{prefix("10.244.0.0/16")}
	a := at("a", "10.244.0.0/24", "192.0.2.1").born(1)
	plan := Decide(Input{Mode: VXLAN, Cluster: cluster, Own: at("b", "10.244.1.0/24", "192.0.2.2"), MTU: 1500,
		Others: []Node{a, at("c", "10.244.0.0/24", "10.244.7.0/24", "192.0.2.3").born(2)}})
	if len(plan.Tunnel.Peers) != 1 || plan.Tunnel.Peers[0].Node != a.Addresses[0] {
		t.Errorf("the peers are %+v, want node a alone", plan.Tunnel.Peers)
	}
}

func TestDecideTunnel(t *testing.T) {
	cluster := []netip.Prefix{prefix("10.244.0.0/16"), prefix("fd00::/48")}
	own := at("b", "10.244.1.0/24", "fd00:0:0:1::/64", "192.0.2.2")
	a := at("a", "10.244.0.0/24", "fd00::/64", "198.51.100.1")
	plan := Decide(Input{Mode: VXLAN, Cluster: cluster, Own: own, Others: []Node{a, at("c", "10.244.2.0/24",
		"2001:db8::3")}, MTU: 1500})
	if fmt.Sprint(plan.Routes) != "[{10.244.0.0/24 10.244.0.0} {fd00::/64 fd00::}]" || plan.MTU != 1450 {
		t.Errorf("routes %v, MTU %d", plan.Routes, plan.MTU)
	}
	want := &Tunnel{Local: own.Addresses[0], Hardware: hardwareOf(own),
		Addresses: []netip.Prefix{prefix("10.244.1.0/32"), prefix("fd00:0:0:1::/128")},
		Peers: []Peer{{Hardware: hardwareOf(a), Node: a.Addresses[0],
			Addresses: []netip.Addr{netip.MustParseAddr("10.244.0.0"), netip.MustParseAddr("fd00::")}}}}
	if !reflect.DeepEqual(plan.Tunnel, want) {
		t.Errorf("the tunnel is %+v, want %+v", plan.Tunnel, want)
	}
	if text := fmt.Sprint(plan.Problems); text !=
		"[node c has no InternalIP by which its range 10.244.2.0/24 is reached]" {
		t.Errorf("problems %s", text)
	}
	six := Decide(Input{Mode: VXLAN, Cluster: cluster, Own: at("b", "fd00:0:0:1::/64", "2001:db8::2"), MTU: 1500})
	if six.MTU != 1430 {
		t.Errorf("over IPv6 Pods send %d", six.MTU)
	}
}

// Every node computes the same address for a node, a different one for each, and a locally administered one.
func TestHardware(t *testing.T) {
	a, moved := at("a", "10.244.0.0/24", "192.0.2.1"), at("a", "10.244.0.0/24", "192.0.2.9")
	b := at("b", "10.244.1.0/24")
	if hardwareOf(a) != hardwareOf(moved) || hardwareOf(a) == hardwareOf(b) || hardwareOf(a)[0]&3 != 2 {
		t.Errorf("%x, %x, %x", hardwareOf(a), hardwareOf(moved), hardwareOf(b))
	}
}

func TestCNIConfig(t *testing.T) {
	c := CNI{Bridge: "keel0", AddressesDir: "/d/addresses", PortTable: "ports",
		Kept: []keptport.Port{{Keeper: "x", Protocol: keptport.UDP, First: 1, Last: 2}}}
	text, err := c.Config(Decide(Input{Mode: Routes, Own: at("b", "10.244.1.0/24", "fd00:0:0:1::/64"), MTU: 1400}))
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		CNIVersion, Name string
		Plugins          []struct {
			Type, Bridge, Table    string
			IsGateway, HairpinMode bool
			MTU                    int
			Capabilities           map[string]bool
			Kept                   []keptport.Port
			IPAM                   struct {
				Type, DataDir string
				Ranges        [][]struct{ Subnet, Gateway string }
				Routes        []struct{ Dst string }
			}
		}
	}
	if err := json.Unmarshal([]byte(text), &config); err != nil || len(config.Plugins) != 2 {
		t.Fatalf("%v in %s", err, text)
	}
	bridge, ports := config.Plugins[0], config.Plugins[1]
	if config.Name != "keel0" || config.CNIVersion != "1.0.0" || bridge.Type != "bridge" || bridge.Bridge != "keel0" ||
		bridge.MTU != 1400 || !bridge.IsGateway || !bridge.HairpinMode || bridge.IPAM.Type != "host-local" ||
		bridge.IPAM.DataDir != "/d/addresses" ||
		fmt.Sprint(bridge.IPAM.Ranges) != "[[{10.244.1.0/24 10.244.1.1}] [{fd00:0:0:1::/64 fd00:0:0:1::1}]]" ||
		fmt.Sprint(bridge.IPAM.Routes) != "[{0.0.0.0/0} {::/0}]" {
		t.Errorf("got %s", text)
	}
	if ports.Type != "keelson-hostport" || ports.Table != "ports" || !ports.Capabilities["portMappings"] ||
		!slices.Equal(ports.Kept, c.Kept) {
		t.Errorf("ports of the machine lead nowhere: %s", text)
	}
	if text, err = (CNI{Bridge: "keel0"}).Config(Plan{}); err != nil || strings.Contains(text, "hostport") {
		t.Errorf("without a table for ports: %s, %v", text, err)
	}
}
