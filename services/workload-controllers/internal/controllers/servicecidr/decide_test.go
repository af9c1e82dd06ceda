package servicecidr

import (
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var now = time.Date(2026, 1, 10, 12, 0, 0, 0, time.UTC)

func cidr(changes ...func(*networkingv1.ServiceCIDR)) *networkingv1.ServiceCIDR {
	r := &networkingv1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{Name: "more"},
		Spec: networkingv1.ServiceCIDRSpec{CIDRs: []string{"10.97.0.0/24", "fd00:2::/112"}}}
	for _, change := range changes {
		change(r)
	}
	return r
}

func held(r *networkingv1.ServiceCIDR) {
	r.Finalizers = []string{"networking.k8s.io/service-cidr-finalizer"}
}

func ready(status metav1.ConditionStatus) func(*networkingv1.ServiceCIDR) {
	return func(r *networkingv1.ServiceCIDR) {
		r.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: status, Reason: "Told"}}
	}
}

func deleted(ago time.Duration) func(*networkingv1.ServiceCIDR) {
	return func(r *networkingv1.ServiceCIDR) { r.DeletionTimestamp = &metav1.Time{Time: now.Add(-ago)} }
}

func TestDecide(t *testing.T) {
	wider := func(changes ...func(*networkingv1.ServiceCIDR)) *networkingv1.ServiceCIDR {
		r := cidr(changes...)
		r.Spec.CIDRs = []string{"10.97.0.0/16"}
		return r
	}
	for _, row := range []struct {
		name      string
		r         *networkingv1.ServiceCIDR
		others    []*networkingv1.ServiceCIDR
		addresses string
		// hold or release, the condition with its reason, what is in use, and when to look again.
		want  string
		after time.Duration
	}{
		{name: "a new one is held first", r: cidr(), want: "hold"},
		{name: "then it is ready", r: cidr(held), want: "True Ready"},
		{name: "what the apiserver says of its own stays", r: cidr(held, ready("True")), want: "True Told"},
		{name: "no longer refused", r: cidr(held, ready("False")), want: "True Ready"},
		{name: "deleted just now, nothing is in use", r: cidr(held, deleted(9*time.Second)), want: "False Terminating",
			after: time.Second},
		{name: "deleted, and all have noticed", r: cidr(held, deleted(10*time.Second)), addresses: "10.96.0.1 fd00::1",
			want: "release False Terminating"},
		{name: "one address is in use", r: cidr(held, deleted(time.Minute)), addresses: "10.97.0.5 10.96.0.1",
			want: "False Terminating 10.97.0.5", after: 10 * time.Second},
		{name: "one of the other family", r: cidr(held, deleted(time.Minute)), addresses: "fd00:2::5",
			want: "False Terminating fd00:2::5", after: 10 * time.Second},
		{name: "another range has the address too", r: cidr(held, deleted(time.Minute)), addresses: "10.97.0.5",
			others: []*networkingv1.ServiceCIDR{wider()}, want: "release False Terminating"},
		{name: "another range that goes as well", r: cidr(held, deleted(time.Minute)), addresses: "10.97.0.5",
			others: []*networkingv1.ServiceCIDR{wider(deleted(0))}, want: "False Terminating 10.97.0.5",
			after: 10 * time.Second},
		{name: "others keep it", r: cidr(deleted(time.Minute)), want: ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			in := Input{Range: row.r, Others: row.others, Now: now}
			for _, text := range strings.Fields(row.addresses) {
				in.Addresses = append(in.Addresses, netip.MustParseAddr(text))
			}
			before := row.r.DeepCopy()
			plan := Decide(in)
			var got []string
			if plan.Hold {
				got = append(got, "hold")
			}
			if plan.Release {
				got = append(got, "release")
			}
			for _, c := range plan.Status.Conditions {
				got = append(got, string(c.Status), c.Reason)
			}
			for _, ip := range plan.InUse {
				got = append(got, ip.String())
			}
			if strings.Join(got, " ") != row.want || plan.After != row.after {
				t.Errorf("got %q after %s, want %q after %s", got, plan.After, row.want, row.after)
			}
			if !reflect.DeepEqual(before, row.r) {
				t.Error("the decision changed its input")
			}
		})
	}
}

func TestAccount(t *testing.T) {
	in := Input{Range: cidr(held, deleted(time.Minute)), Now: now}
	for i := range 7 {
		in.Addresses = append(in.Addresses, netip.AddrFrom4([4]byte{10, 97, 0, byte(i + 1)}))
	}
	used := in
	used.Addresses = in.Addresses[:1]
	for _, row := range []struct {
		in   Input
		want string
	}{
		{Input{Range: cidr(held, ready("True")), Now: now},
			"waits for nothing: cluster IPs are given out of 10.97.0.0/24 and fd00:2::/112"},
		{Input{Range: cidr(), Now: now}, "in its next pass keeps it from going while its addresses are in use"},
		{Input{Range: cidr(held, deleted(0)), Now: now}, "waits for all apiservers to notice that it goes"},
		{Input{Range: cidr(held, deleted(time.Minute)), Now: now},
			"in its next pass lets it go: none of its addresses is in use"},
		{used, "waits for 1 address to be given back: 10.97.0.1"},
		{in,
			"waits for 7 addresses to be given back: 10.97.0.1, 10.97.0.2, 10.97.0.3, 10.97.0.4, 10.97.0.5 and 2 more"},
	} {
		a := account(row.in, Decide(row.in))
		if got := a.Explanation().Summary; got != row.want {
			t.Errorf("got %q, want %q", got, row.want)
		}
	}
}
