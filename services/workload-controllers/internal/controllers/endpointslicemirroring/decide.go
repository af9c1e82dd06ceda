package endpointslicemirroring

import (
	"maps"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/endpointslice/util"
	"k8s.io/utils/ptr"

	"keelson.dev/services/workload-controllers/internal/endpointfeed"
)

const (
	// manager is what the slices of this controller say in their label.
	manager = "endpointslicemirroring-controller.k8s.io"
	// leaderAnnotation is on Endpoints that serve as a lock and lead nowhere.
	leaderAnnotation = "control-plane.alpha.kubernetes.io/leader"
)

// Input is all that a decision depends on. Decide changes none of it.
type Input struct {
	Endpoints *corev1.Endpoints
	// Service is the one of the same name, nil where there is none.
	Service *corev1.Service
	// Slices are those that this controller keeps for the Endpoints.
	Slices []*discoveryv1.EndpointSlice
	// MaxEndpoints is how many addresses of each subset are mirrored.
	MaxEndpoints int32
}

// Decide returns how the slices become what the Endpoints say.
func Decide(in Input) endpointfeed.Plan {
	plan, wanted := endpointfeed.Plan{}, map[group]*discoveryv1.EndpointSlice{}
	if spared(in.Endpoints, in.Service) == "" {
		wanted = slicesOf(&in)
	}
	for _, slice := range in.Slices {
		key := group{slice.AddressType, portsKey(slice.Ports)}
		want := wanted[key]
		if want == nil || !metav1.IsControlledBy(slice, in.Endpoints) {
			plan.Delete = append(plan.Delete, slice)
			continue
		}
		delete(wanted, key)
		if !same(slice, want) {
			next := slice.DeepCopy()
			next.Endpoints, next.Labels, next.Annotations = want.Endpoints, want.Labels, want.Annotations
			plan.Update = append(plan.Update, next)
		}
	}
	for _, slice := range wanted {
		plan.Create = append(plan.Create, slice)
	}
	return plan
}

// spared says why the Endpoints are not mirrored; empty where they are a user's own word about a Service, which
// selects no Pods then.
func spared(endpoints *corev1.Endpoints, service *corev1.Service) string {
	_, lock := endpoints.Annotations[leaderAnnotation]
	switch {
	case endpoints.DeletionTimestamp != nil:
		return "they are being deleted"
	case lock:
		return "they serve as a lock, as their annotation " + leaderAnnotation + " says"
	case endpoints.Labels[discoveryv1.LabelSkipMirror] == "true":
		return "their label " + discoveryv1.LabelSkipMirror + " asks for it"
	case service == nil:
		return noService
	case len(service.Spec.Selector) > 0:
		return "their Service selects Pods, whose EndpointSlices are made without them"
	}
	return ""
}

// noService is why Endpoints are spared that a Service may yet come for.
const noService = "there is no Service of their name"

// group is what the endpoints of one slice have in common.
type group struct {
	family discoveryv1.AddressType
	ports  util.PortMapKey
}

// slicesOf returns the slices that the Endpoints ask for, one for each family and set of ports.
func slicesOf(in *Input) map[group]*discoveryv1.EndpointSlice {
	all := map[group]*discoveryv1.EndpointSlice{}
	for _, subset := range in.Endpoints.Subsets {
		ports, room := portsOf(subset.Ports), int(in.MaxEndpoints)
		add := func(addresses []corev1.EndpointAddress, ready bool) {
			for i := range addresses {
				family, valid := familyOf(addresses[i].IP)
				key := group{family, portsKey(ports)}
				if !valid || room == 0 || all[key] != nil && len(all[key].Endpoints) >= int(in.MaxEndpoints) {
					continue
				}
				if all[key] == nil {
					all[key] = newSlice(in.Endpoints, family, ports)
				}
				all[key].Endpoints = append(all[key].Endpoints, endpoint(&addresses[i], ready))
				room--
			}
		}
		add(subset.Addresses, true)
		add(subset.NotReadyAddresses, false)
	}
	return all
}

func familyOf(ip string) (discoveryv1.AddressType, bool) {
	address, err := netip.ParseAddr(ip)
	if err == nil && address.Is6() {
		return discoveryv1.AddressTypeIPv6, true
	}
	return discoveryv1.AddressTypeIPv4, err == nil
}

func portsOf(ports []corev1.EndpointPort) []discoveryv1.EndpointPort {
	all := make([]discoveryv1.EndpointPort, 0, len(ports))
	for _, port := range ports {
		all = append(all, discoveryv1.EndpointPort{Name: ptr.To(port.Name), Port: ptr.To(port.Port),
			Protocol: ptr.To(port.Protocol), AppProtocol: port.AppProtocol})
	}
	return all
}

// portsKey returns a key that distinguishes sets of ports. The library sorts its argument in place.
func portsKey(ports []discoveryv1.EndpointPort) util.PortMapKey {
	return util.NewPortMapKey(append([]discoveryv1.EndpointPort{}, ports...))
}

func endpoint(address *corev1.EndpointAddress, ready bool) discoveryv1.Endpoint {
	e := discoveryv1.Endpoint{Addresses: []string{address.IP}, TargetRef: address.TargetRef, NodeName: address.NodeName,
		Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(ready)}}
	if address.Hostname != "" {
		e.Hostname = ptr.To(address.Hostname)
	}
	return e
}

func newSlice(endpoints *corev1.Endpoints, family discoveryv1.AddressType, ports []discoveryv1.EndpointPort,
) *discoveryv1.EndpointSlice {
	prefix := endpoints.Name + "-"
	if len(validation.NameIsDNSSubdomain(prefix, true)) > 0 {
		prefix = endpoints.Name
	}
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: endpoints.Namespace, GenerateName: prefix, Labels: map[string]string{},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(endpoints,
				corev1.SchemeGroupVersion.WithKind("Endpoints"))},
		},
		AddressType: family, Ports: ports,
	}
	maps.Copy(slice.Labels, endpoints.Labels)
	slice.Labels[discoveryv1.LabelServiceName], slice.Labels[discoveryv1.LabelManagedBy] = endpoints.Name, manager
	for key, value := range endpoints.Annotations {
		if key != corev1.LastAppliedConfigAnnotation {
			metav1.SetMetaDataAnnotation(&slice.ObjectMeta, key, value)
		}
	}
	return slice
}

// same reports whether a slice says what it should.
func same(have, want *discoveryv1.EndpointSlice) bool {
	return maps.Equal(have.Labels, want.Labels) && maps.Equal(have.Annotations, want.Annotations) &&
		apiequality.Semantic.DeepEqual(have.Endpoints, want.Endpoints)
}
