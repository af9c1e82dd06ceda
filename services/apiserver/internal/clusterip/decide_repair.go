package clusterip

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// grace is how old an address without a Service is when it goes: longer than the request that makes both may take.
const grace = 2 * time.Minute

// State is what a repair compares.
type State struct {
	Services  []corev1.Service
	Addresses []networkingv1.IPAddress
	// Ranges are those that addresses are given out of.
	Ranges []netip.Prefix
	Now    time.Time
}

// Repair is what brings Services and addresses together again.
type Repair struct {
	// Remove comes first: an address that names another owner makes room for one that is created.
	Remove, Create []*networkingv1.IPAddress
	Tell           []Finding
}

// Finding is an Event about a Service or an address.
type Finding struct {
	// Service or Address is what it is about.
	Service *corev1.Service
	Address *networkingv1.IPAddress
	Reason  string
	Message string
}

// DecideRepair finds what differs. The first start after the addresses were stored elsewhere creates them all, without
// an event.
func DecideRepair(s State) Repair {
	var r Repair
	known, moving := map[string]*networkingv1.IPAddress{}, true
	for i := range s.Addresses {
		known[s.Addresses[i].Name] = &s.Addresses[i]
		moving = moving && !managed(&s.Addresses[i])
	}
	owned := map[string]bool{}
	for _, service := range byAge(s.Services) {
		for _, text := range service.Spec.ClusterIPs {
			if text != corev1.ClusterIPNone {
				r.check(s, service, text, known, owned)
			}
		}
	}
	if moving {
		r.Tell = slices.DeleteFunc(r.Tell, func(f Finding) bool { return f.Reason == "ClusterIPNotAllocated" })
	}
	for i := range s.Addresses {
		address := &s.Addresses[i]
		if managed(address) && !owned[address.Name] && s.Now.Sub(address.CreationTimestamp.Time) > grace {
			r.Remove = append(r.Remove, address)
			r.Tell = append(r.Tell, Finding{Address: address, Reason: "IPAddressNotAllocated", Message: fmt.Sprintf(
				"IPAddress: %s for Service %s appears to have leaked: cleaning up", address.Name, parent(address))})
		}
	}
	return r
}

// check looks at one address of a Service.
func (r *Repair) check(s State, service *corev1.Service, text string, known map[string]*networkingv1.IPAddress,
	owned map[string]bool) {
	tell := func(reason, message string) {
		r.Tell = append(r.Tell, Finding{Service: service, Reason: reason, Message: message})
	}
	where := fmt.Sprintf("%s for Service %s/%s", text, service.Namespace, service.Name)
	ip, err := netip.ParseAddr(text)
	if err != nil {
		tell("ClusterIPNotValid", "Cluster IP "+where+" is not a valid IP; please recreate Service")
		return
	}
	name := ip.String()
	if owned[name] {
		tell("ClusterIPAlreadyAllocated",
			"Cluster IP "+where+" was assigned to multiple services; please recreate service")
		return
	}
	owned[name] = true
	if !slices.ContainsFunc(s.Ranges, func(p netip.Prefix) bool { return p.Contains(ip) }) {
		tell("ClusterIPOutOfRange", "Cluster IP "+where+
			" is not within any configured Service CIDR; please recreate service")
	}
	address := known[name]
	switch {
	case address == nil:
		tell("ClusterIPNotAllocated", "Cluster IP "+where+" is not allocated; repairing")
	case parentOf(address) == OwnerOf(service):
		return
	default:
		tell("IPAddressWrongReference",
			fmt.Sprintf("IPAddress: %s for Service %s/%s has a wrong reference; cleaning up",
				name, service.Namespace, service.Name))
		r.Remove = append(r.Remove, address)
	}
	r.Create = append(r.Create, newAddress(ip, OwnerOf(service)))
}

// byAge lists the Services, those that came first in front.
func byAge(services []corev1.Service) []*corev1.Service {
	all := make([]*corev1.Service, 0, len(services))
	for i := range services {
		all = append(all, &services[i])
	}
	slices.SortFunc(all, func(a, b *corev1.Service) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Namespace, b.Namespace),
			cmp.Compare(a.Name, b.Name))
	})
	return all
}

// Owner is the Service that an address belongs to.
type Owner struct{ Namespace, Name string }

// OwnerOf is the Service as an owner.
func OwnerOf(s *corev1.Service) Owner { return Owner{s.Namespace, s.Name} }

func parentOf(a *networkingv1.IPAddress) Owner {
	ref := a.Spec.ParentRef
	if ref == nil || ref.Group != "" || ref.Resource != "services" {
		return Owner{}
	}
	return Owner{ref.Namespace, ref.Name}
}

func parent(a *networkingv1.IPAddress) string {
	owner := parentOf(a)
	return owner.Namespace + "/" + owner.Name
}

func managed(a *networkingv1.IPAddress) bool { return a.Labels[networkingv1.LabelManagedBy] == manager }

// manager is the value by which the field knows the addresses of Services.
const manager = "ipallocator.k8s.io"

// newAddress is the object that says that the owner has the address.
func newAddress(ip netip.Addr, owner Owner) *networkingv1.IPAddress {
	return &networkingv1.IPAddress{
		ObjectMeta: metav1.ObjectMeta{Name: ip.String(), Labels: map[string]string{
			networkingv1.LabelManagedBy: manager, networkingv1.LabelIPAddressFamily: string(FamilyOf(ip))}},
		Spec: networkingv1.IPAddressSpec{ParentRef: &networkingv1.ParentReference{Resource: "services",
			Namespace: owner.Namespace, Name: owner.Name}},
	}
}

// FamilyOf is the address's family.
func FamilyOf(ip netip.Addr) corev1.IPFamily {
	if ip.Is4() {
		return corev1.IPv4Protocol
	}
	return corev1.IPv6Protocol
}
