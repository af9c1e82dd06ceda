package clusterip

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestBlock(t *testing.T) {
	for _, row := range []struct {
		prefix        string
		size, band    int
		first, second string
		in, out       string
	}{
		{"10.96.0.0/16", 65534, 256, "10.96.0.1", "10.96.0.2", "10.96.255.254",
			"10.96.0.0 10.96.255.255 10.97.0.1 fd00::1"},
		{"10.96.0.9/28", 14, 0, "10.96.0.1", "10.96.0.2", "10.96.0.14", "10.96.0.0 10.96.0.15 10.96.0.16"},
		{"10.0.0.0/8", 1 << 20, 256, "10.0.0.1", "10.0.0.2", "10.255.0.1", "11.0.0.1"},
		{"fd00::/112", 65535, 256, "fd00::1", "fd00::2", "fd00::ffff", "fd00:: fd00::1:0 10.96.0.1"},
		{"fd00::/64", 1 << 20, 256, "fd00::1", "fd00::2", "fd00::ffff:ffff:ffff", "fd01::1"},
		{"10.0.0.0/24", 254, 16, "10.0.0.1", "10.0.0.2", "10.0.0.254", "10.0.0.255"},
		{"10.0.0.0/22", 1022, 63, "10.0.0.1", "10.0.0.2", "10.0.3.254", "10.0.3.255"},
		{"10.0.0.0/32", 0, 0, "10.0.0.1", "10.0.0.2", "", "10.0.0.0"},
	} {
		b := blockOf(netip.MustParsePrefix(row.prefix))
		if b.size != row.size || b.band() != row.band || b.at(0).String() != row.first ||
			b.at(1).String() != row.second {
			t.Errorf("%s: %d addresses from %s, %s, a band of %d", row.prefix, b.size, b.at(0), b.at(1), b.band())
		}
		for _, text := range strings.Fields(row.in) {
			if !b.has(netip.MustParseAddr(text)) {
				t.Errorf("%s does not have %s", row.prefix, text)
			}
		}
		for _, text := range strings.Fields(row.out) {
			if b.has(netip.MustParseAddr(text)) {
				t.Errorf("%s has %s", row.prefix, text)
			}
		}
	}
}

// No address is given out twice, all are, and the bands of all blocks come last.
func TestPickGivesEachAddressOnce(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	blocks := []block{blockOf(netip.MustParsePrefix("10.0.0.0/26")), blockOf(netip.MustParsePrefix("10.1.0.0/30")),
		blockOf(netip.MustParsePrefix("10.2.0.0/27"))}
	taken := map[netip.Addr]bool{}
	banded := func(ip netip.Addr) bool {
		return slices.ContainsFunc(blocks, func(b block) bool {
			for i := range b.band() {
				if b.at(i) == ip {
					return true
				}
			}
			return false
		})
	}
	var order []bool
	for {
		ip, found := pick(blocks, taken, r.IntN)
		if !found {
			break
		}
		if taken[ip] || !slices.ContainsFunc(blocks, func(b block) bool { return b.has(ip) }) {
			t.Fatalf("gave out %s after %d others", ip, len(taken))
		}
		taken[ip] = true
		order = append(order, banded(ip))
	}
	if len(order) != 62+2+30 {
		t.Errorf("%d addresses were given out", len(order))
	}
	if first := slices.Index(order, true); slices.Contains(order[first:], false) || first != 62+2+30-16-16 {
		t.Errorf("the first of a band was number %d", first)
	}
}

func cidr(name, ready string, deleted bool, cidrs ...string) networkingv1.ServiceCIDR {
	c := networkingv1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: networkingv1.ServiceCIDRSpec{CIDRs: cidrs}}
	if ready != "" {
		c.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionStatus(ready)}}
	}
	if deleted {
		c.DeletionTimestamp = &metav1.Time{}
	}
	return c
}

func TestUsable(t *testing.T) {
	configured := []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16")}
	for _, row := range []struct {
		name   string
		ranges []networkingv1.ServiceCIDR
		want   string
	}{
		{"none is made", nil, "[10.96.0.0/16]"},
		{"the default", []networkingv1.ServiceCIDR{cidr("kubernetes", "True", false, "10.0.0.0/16", "fd00::/112")},
			"[10.0.0.0/16 fd00::/112]"},
		{"the default, just made", []networkingv1.ServiceCIDR{cidr("kubernetes", "", false, "10.0.0.0/16")},
			"[10.0.0.0/16]"},
		{"the default goes", []networkingv1.ServiceCIDR{cidr("kubernetes", "True", true, "10.0.0.0/16")}, "[]"},
		{"the default is not ready", []networkingv1.ServiceCIDR{cidr("kubernetes", "False", false, "10.0.0.0/16")},
			"[]"},
		{"more", []networkingv1.ServiceCIDR{cidr("a", "True", false, "10.1.0.0/16"),
			cidr("b", "", false, "10.2.0.0/16"),
			cidr("c", "True", true, "10.3.0.0/16"), cidr("d", "False", false, "10.4.0.0/16")},
			"[10.96.0.0/16 10.1.0.0/16]"},
	} {
		if got := fmt.Sprint(usable(row.ranges, configured)); got != row.want {
			t.Errorf("%s: %s, want %s", row.name, got, row.want)
		}
	}
}

var now = time.Date(2026, 1, 10, 12, 0, 0, 0, time.UTC)

// service was made at a second.
func service(name string, second int, ips ...string) corev1.Service {
	return corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name,
		CreationTimestamp: metav1.NewTime(now.Add(time.Duration(second) * time.Second))},
		Spec: corev1.ServiceSpec{ClusterIPs: ips}}
}

// taken is the address of a Service, and how old it is.
func taken(ip, owner string, age time.Duration) networkingv1.IPAddress {
	a := newAddress(netip.MustParseAddr(ip), Owner{"ns", owner})
	a.CreationTimestamp = metav1.NewTime(now.Add(-age))
	return *a
}

func reserved(ip string) networkingv1.IPAddress {
	a := taken(ip, "edge", time.Hour)
	a.Labels, a.Spec.ParentRef.Resource = nil, "gateways"
	return a
}

func TestDecideRepair(t *testing.T) {
	names := func(all []*networkingv1.IPAddress) string {
		var found []string
		for _, a := range all {
			found = append(found, a.Name+" "+parentOf(a).Name)
		}
		return strings.Join(found, ",")
	}
	other := taken("10.96.0.9", "other", 0)
	for _, row := range []struct {
		name                 string
		services             []corev1.Service
		addresses            []networkingv1.IPAddress
		remove, create, tell string
	}{
		{name: "nothing differs", services: []corev1.Service{service("a", 0, "10.96.0.1"), service("b", 0, "None"),
			service("c", 0)}, addresses: []networkingv1.IPAddress{taken("10.96.0.1", "a", time.Hour),
			reserved("10.96.0.3")}},
		{name: "the first start", services: []corev1.Service{service("a", 0, "10.96.0.1", "fd00::1"),
			service("b", 0, "10.96.0.2")}, create: "10.96.0.1 a,fd00::1 a,10.96.0.2 b"},
		{name: "one is lost", services: []corev1.Service{service("a", 0, "10.96.0.1"),
			service("other", 0, "10.96.0.9")},
			addresses: []networkingv1.IPAddress{other}, create: "10.96.0.1 a", tell: "ns/a ClusterIPNotAllocated"},
		{name: "a young one has no Service yet", services: []corev1.Service{service("other", 0, "10.96.0.9")},
			addresses: []networkingv1.IPAddress{other, taken("10.96.0.1", "a", 2*time.Minute)}},
		{name: "an old one has no Service", addresses: []networkingv1.IPAddress{taken("10.96.0.1", "a",
			2*time.Minute+time.Second)}, remove: "10.96.0.1 a", tell: "10.96.0.1 IPAddressNotAllocated"},
		{name: "its Service has another address", services: []corev1.Service{service("a", 0, "10.96.0.2")},
			addresses: []networkingv1.IPAddress{taken("10.96.0.1", "a", time.Hour), taken("10.96.0.2", "a", time.Hour)},
			remove:    "10.96.0.1 a", tell: "10.96.0.1 IPAddressNotAllocated"},
		{name: "another Service's", services: []corev1.Service{service("a", 0, "10.96.0.1")},
			addresses: []networkingv1.IPAddress{taken("10.96.0.1", "b", 0)}, remove: "10.96.0.1 b",
			create: "10.96.0.1 a", tell: "ns/a IPAddressWrongReference"},
		{name: "two Services, the older one has it", services: []corev1.Service{service("a", 1, "10.96.0.1"),
			service("b", 0, "10.96.0.1")}, addresses: []networkingv1.IPAddress{taken("10.96.0.1", "b", 0)},
			tell: "ns/a ClusterIPAlreadyAllocated"},
		{name: "out of range", services: []corev1.Service{service("a", 0, "10.97.0.1")},
			addresses: []networkingv1.IPAddress{taken("10.97.0.1", "a", 0)}, tell: "ns/a ClusterIPOutOfRange"},
		{name: "no address at all", services: []corev1.Service{service("a", 0, "ten")}, tell: "ns/a ClusterIPNotValid"},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := DecideRepair(State{Services: row.services, Addresses: row.addresses, Now: now,
				Ranges: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16"), netip.MustParsePrefix("fd00::/112")}})
			var told []string
			for _, f := range r.Tell {
				about := ""
				if f.Service != nil {
					about = f.Service.Namespace + "/" + f.Service.Name
				} else {
					about = f.Address.Name
				}
				told = append(told, about+" "+f.Reason)
			}
			if names(r.Remove) != row.remove || names(r.Create) != row.create || strings.Join(told, ",") != row.tell {
				t.Errorf("removes %q, creates %q, tells %q", names(r.Remove), names(r.Create), told)
			}
		})
	}
}
