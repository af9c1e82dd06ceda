package endpointslice

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"keelson.dev/services/workload-controllers/internal/endpointfeed"
	"keelson.dev/services/workload-controllers/internal/podfeed"
)

var changed = time.Date(2026, 1, 10, 12, 0, 0, 0, time.UTC)

func service(changes ...func(*corev1.Service)) *corev1.Service {
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "web-uid",
			Labels: map[string]string{"team": "a"}},
		Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "web"}, ClusterIP: "10.0.0.7",
			IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol},
			Ports: []corev1.ServicePort{{Name: "http", Port: 80, Protocol: "TCP",
				TargetPort: intstr.FromInt32(8080)}}},
	}
	for _, change := range changes {
		change(s)
	}
	return s
}

// pod returns one that is ready on node n1, as the cache has it.
func pod(number int, changes ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("p", number),
			UID: types.UID(fmt.Sprint("u", number)), Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{{Name: "c"}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning,
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	}
	p.Status.PodIP = fmt.Sprintf("10.1.%d.%d", number/250, number%250+1)
	p.Status.PodIPs = []corev1.PodIP{{IP: p.Status.PodIP}}
	for _, change := range changes {
		change(p)
	}
	kept, err := podfeed.Trim(p)
	if err != nil {
		panic(err)
	}
	return kept.(*corev1.Pod)
}

func unready(p *corev1.Pod)     { p.Status.Conditions[0].Status = corev1.ConditionFalse }
func terminating(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: changed} }
func on(node string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.NodeName = node }
}

func port(name string, number int32) corev1.Container {
	return corev1.Container{Name: name, Ports: []corev1.ContainerPort{{Name: "named", ContainerPort: number,
		Protocol: "TCP"}}}
}

func byName(s *corev1.Service) { s.Spec.Ports[0].TargetPort = intstr.FromString("named") }

var zones = map[string]*corev1.Node{
	"n1": {ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{corev1.LabelTopologyZone: "za"}}},
	"n2": {ObjectMeta: metav1.ObjectMeta{Name: "n2"}},
}

func input(s *corev1.Service, pods ...*corev1.Pod) Input {
	return Input{Service: s, Pods: pods, Nodes: zones, MaxEndpoints: 100, Changed: changed}
}

// describe returns an endpoint in short: address, R(eady) S(erving) T(erminating), and what else there is.
func describe(e *discoveryv1.Endpoint) string {
	text := strings.Join(e.Addresses, "+") + " "
	if *e.Conditions.Ready {
		text += "R"
	}
	if *e.Conditions.Serving {
		text += "S"
	}
	if *e.Conditions.Terminating {
		text += "T"
	}
	text += " " + e.TargetRef.Kind + "/" + e.TargetRef.Name + " " + ptr.Deref(e.NodeName, "-") + " " +
		ptr.Deref(e.Zone, "-")
	if e.Hostname != nil {
		text += " " + *e.Hostname
	}
	if e.Hints != nil {
		for _, zone := range e.Hints.ForZones {
			text += " for " + zone.Name
		}
		for _, node := range e.Hints.ForNodes {
			text += " for " + node.Name
		}
	}
	return text
}

// summary is what new slices say, each as its ports and endpoints.
func summary(all []*discoveryv1.EndpointSlice) []string {
	var lines []string
	for _, slice := range all {
		var ports, endpoints []string
		for _, p := range slice.Ports {
			ports = append(ports, fmt.Sprintf("%s:%d", *p.Name, *p.Port))
		}
		for i := range slice.Endpoints {
			endpoints = append(endpoints, describe(&slice.Endpoints[i]))
		}
		slices.Sort(ports)
		slices.Sort(endpoints)
		lines = append(lines, fmt.Sprintf("%s %s: %s", slice.AddressType, strings.Join(ports, ","),
			strings.Join(endpoints, "; ")))
	}
	slices.Sort(lines)
	return lines
}

func TestDecide(t *testing.T) {
	for _, row := range []struct {
		name    string
		service *corev1.Service
		pods    []*corev1.Pod
		want    []string
	}{
		{"a ready Pod", service(), []*corev1.Pod{pod(1)}, []string{"IPv4 http:8080: 10.1.0.2 RS Pod/p1 n1 za"}},
		{"POD-141 POD-144 POD-145 one that is not", service(), []*corev1.Pod{pod(1, unready)},
			[]string{"IPv4 http:8080: 10.1.0.2  Pod/p1 n1 za"}},
		{"POD-160 POD-162 POD-163 one that is on its way out and serves", service(),
			[]*corev1.Pod{pod(1, terminating)}, []string{"IPv4 http:8080: 10.1.0.2 ST Pod/p1 n1 za"}},
		{"POD-162 POD-163 one that is on its way out and does not serve", service(),
			[]*corev1.Pod{pod(1, terminating, unready)}, []string{"IPv4 http:8080: 10.1.0.2 T Pod/p1 n1 za"}},
		{"not ready ones are published", service(func(s *corev1.Service) { s.Spec.PublishNotReadyAddresses = true }),
			[]*corev1.Pod{pod(1, unready), pod(2, terminating)},
			[]string{"IPv4 http:8080: 10.1.0.2 R Pod/p1 n1 za; 10.1.0.3 RST Pod/p2 n1 za"}},
		{"one that has ended", service(), []*corev1.Pod{pod(1, func(p *corev1.Pod) {
			p.Status.Phase = corev1.PodSucceeded
		})}, []string{"IPv4 : "}},
		{"one without an address", service(), []*corev1.Pod{pod(1, func(p *corev1.Pod) {
			p.Status.PodIP, p.Status.PodIPs = "", nil
		})}, []string{"IPv4 : "}},
		{"no Pods", service(), nil, []string{"IPv4 : "}},
		{"a node without a zone", service(), []*corev1.Pod{pod(1, on("n2"))},
			[]string{"IPv4 http:8080: 10.1.0.2 RS Pod/p1 n2 -"}},
		{"a node that does not exist", service(), []*corev1.Pod{pod(1, on("gone")), pod(2)},
			[]string{"IPv4 http:8080: 10.1.0.3 RS Pod/p2 n1 za"}},
		{"a named port, two versions of it", service(byName), []*corev1.Pod{
			pod(1, func(p *corev1.Pod) { p.Spec.Containers = []corev1.Container{port("c", 80)} }),
			pod(2, func(p *corev1.Pod) { p.Spec.Containers = []corev1.Container{port("c", 81)} }),
			pod(3, func(p *corev1.Pod) { p.Spec.Containers = []corev1.Container{{Name: "c"}, port("d", 80)} })},
			[]string{"IPv4 http:80: 10.1.0.2 RS Pod/p1 n1 za; 10.1.0.4 RS Pod/p3 n1 za",
				"IPv4 http:81: 10.1.0.3 RS Pod/p2 n1 za"}},
		{"POD-202 the port of an init container", service(byName), []*corev1.Pod{
			pod(1, func(p *corev1.Pod) { p.Spec.InitContainers = []corev1.Container{port("c", 80)} })},
			[]string{"IPv4 : 10.1.0.2 RS Pod/p1 n1 za"}},
		{"the port of a sidecar", service(byName), []*corev1.Pod{pod(1, func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{port("c", 80)}
			p.Spec.InitContainers[0].RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
		})}, []string{"IPv4 http:80: 10.1.0.2 RS Pod/p1 n1 za"}},
		{"SET-150 headless with host names", service(func(s *corev1.Service) {
			s.Spec.ClusterIP, s.Spec.Ports = "None", nil
		}), []*corev1.Pod{
			pod(1, func(p *corev1.Pod) { p.Spec.Hostname, p.Spec.Subdomain = "job-0", "web" }),
			pod(2, func(p *corev1.Pod) { p.Spec.Hostname, p.Spec.Subdomain = "job-1", "other" })},
			[]string{"IPv4 : 10.1.0.2 RS Pod/p1 n1 za job-0; 10.1.0.3 RS Pod/p2 n1 za"}},
		{"both families", service(func(s *corev1.Service) {
			s.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv6Protocol, corev1.IPv4Protocol}
		}), []*corev1.Pod{pod(1, func(p *corev1.Pod) {
			p.Status.PodIPs = append(p.Status.PodIPs, corev1.PodIP{IP: "fd00::1"})
		}), pod(2)}, []string{
			"IPv4 http:8080: 10.1.0.2 RS Pod/p1 n1 za; 10.1.0.3 RS Pod/p2 n1 za",
			"IPv6 http:8080: fd00::1 RS Pod/p1 n1 za"}},
		{"traffic stays in its zone", service(func(s *corev1.Service) {
			s.Spec.TrafficDistribution = ptr.To(corev1.ServiceTrafficDistributionPreferSameZone)
		}), []*corev1.Pod{pod(1), pod(2, on("n2"))},
			[]string{"IPv4 http:8080: 10.1.0.2 RS Pod/p1 n1 za for za; 10.1.0.3 RS Pod/p2 n2 -"}},
		{"traffic stays on its node", service(func(s *corev1.Service) {
			s.Spec.TrafficDistribution = ptr.To(corev1.ServiceTrafficDistributionPreferSameNode)
		}), []*corev1.Pod{pod(1)}, []string{"IPv4 http:8080: 10.1.0.2 RS Pod/p1 n1 za for za for n1"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			plan := Decide(input(row.service, row.pods...))
			if got := summary(plan.Create); !slices.Equal(got, row.want) {
				t.Errorf("slices\n%q, want\n%q", got, row.want)
			}
			for _, slice := range plan.Create {
				owner := metav1.GetControllerOf(slice)
				if slice.Labels["kubernetes.io/service-name"] != "web" || slice.Labels["team"] != "a" ||
					slice.Labels["endpointslice.kubernetes.io/managed-by"] != "endpointslice-controller.k8s.io" ||
					slice.GenerateName != "web-" || owner == nil || owner.UID != "web-uid" ||
					slice.Annotations["endpoints.kubernetes.io/last-change-trigger-time"] != "2026-01-10T12:00:00Z" {
					t.Errorf("metadata %+v", slice.ObjectMeta)
				}
				_, headless := slice.Labels["service.kubernetes.io/headless"]
				if headless != (row.service.Spec.ClusterIP == "None") {
					t.Errorf("labels %v", slice.Labels)
				}
			}
			// What was written is settled.
			if again := Decide(after(input(row.service, row.pods...), plan)); writes(again) > 0 {
				t.Errorf("a second pass writes %+v", again)
			}
		})
	}
}

// after is the input of the next pass.
func after(in Input, plan endpointfeed.Plan) Input {
	written := map[string]*discoveryv1.EndpointSlice{}
	for _, slice := range in.Slices {
		written[slice.Name] = slice
	}
	for i, slice := range append(plan.Update, plan.Create...) {
		slice = slice.DeepCopy()
		if slice.Name == "" {
			slice.Name = fmt.Sprint("web-", len(in.Slices)+i)
		}
		slice.UID, slice.ResourceVersion = types.UID(slice.Name), slice.ResourceVersion+"1"
		written[slice.Name] = slice
	}
	for _, slice := range plan.Delete {
		delete(written, slice.Name)
	}
	in.Slices = nil
	for _, slice := range written {
		in.Slices = append(in.Slices, slice)
	}
	return in
}

func writes(plan endpointfeed.Plan) int {
	return len(plan.Create) + len(plan.Update) + len(plan.Delete)
}

// Of 1,000 Pods in slices of 100, one that changes, comes or goes costs one write; the input stays as it was.
func TestOnePodCostsOneSlice(t *testing.T) {
	var pods []*corev1.Pod
	for i := range 1000 {
		pods = append(pods, pod(i))
	}
	plan := Decide(input(service(), pods...))
	if len(plan.Create) != 10 || writes(plan) != 10 {
		t.Fatalf("%d slices for 1,000 Pods, %d writes", len(plan.Create), writes(plan))
	}
	for _, slice := range plan.Create {
		if len(slice.Endpoints) != 100 {
			t.Errorf("a slice of %d endpoints", len(slice.Endpoints))
		}
	}
	settled := after(input(service(), pods...), plan)
	for name, now := range map[string][]*corev1.Pod{
		"one is not ready":    append(slices.Clone(pods[1:]), pod(0, unready)),
		"one goes":            pods[1:],
		"one comes":           append(slices.Clone(pods), pod(1000)),
		"one takes its place": append(slices.Clone(pods[1:]), pod(1001)),
	} {
		in := settled
		in.Pods = now
		before := slices.Clone(in.Slices)
		for i := range before {
			before[i] = before[i].DeepCopy()
		}
		plan := Decide(in)
		if writes(plan) != 1 {
			t.Errorf("%s: %d creations, %d updates, %d deletions", name, len(plan.Create), len(plan.Update),
				len(plan.Delete))
		}
		for _, slice := range plan.Update {
			if slice.ResourceVersion == "" || slice.UID == "" {
				t.Errorf("%s: an update without a condition", name)
			}
		}
		if !reflect.DeepEqual(in.Slices, before) {
			t.Errorf("%s: the input was changed", name)
		}
	}
}

// A slice that is not needed any more becomes one that is, provided that no one has changed it.
func TestSlicesAreReused(t *testing.T) {
	settled := after(input(service(), pod(1)), Decide(input(service(), pod(1))))
	other := settled
	other.Service = service(func(s *corev1.Service) { s.Spec.Ports[0].TargetPort = intstr.FromInt32(9090) })
	plan := Decide(other)
	if len(plan.Update) != 1 || writes(plan) != 1 ||
		plan.Update[0].ResourceVersion != settled.Slices[0].ResourceVersion ||
		*plan.Update[0].Ports[0].Port != 9090 {
		t.Errorf("plan %+v", plan)
	}
	// Slices of an earlier Service of the name are its own garbage; a foreign slice is left whole.
	foreign := settled
	foreign.Slices = []*discoveryv1.EndpointSlice{settled.Slices[0].DeepCopy()}
	foreign.Slices[0].OwnerReferences, foreign.Slices[0].Namespace = nil, "default"
	foreign.Slices[0].Endpoints[0].Addresses = []string{"10.9.9.9", "10.1.1.1"}
	foreign.Slices[0].Ports = []discoveryv1.EndpointPort{{Name: ptr.To("z"), Port: ptr.To[int32](2)},
		{Name: ptr.To("a"), Port: ptr.To[int32](1)}, {Name: ptr.To("b"), Port: ptr.To[int32](3)}}
	before := foreign.Slices[0].DeepCopy()
	plan = Decide(foreign)
	if len(plan.Create) != 1 || len(plan.Delete) != 1 || plan.Delete[0] != foreign.Slices[0] {
		t.Errorf("plan %+v", plan)
	}
	if !reflect.DeepEqual(foreign.Slices[0], before) {
		t.Errorf("the input was changed: %+v", foreign.Slices[0])
	}
}

// A Service that is on its way out gets no new slices: the garbage collector takes those that it has.
func TestNothingNewForAServiceThatGoes(t *testing.T) {
	going := service(func(s *corev1.Service) { s.DeletionTimestamp = &metav1.Time{Time: changed} })
	if plan := Decide(input(going, pod(1))); writes(plan) > 0 {
		t.Errorf("plan %+v", plan)
	}
}

// The library sorts ports and addresses in place: those of the cache stay as they are.
func TestTheCacheIsNotSorted(t *testing.T) {
	for _, addresses := range [][]string{{"10.1.0.2"}, {"10.9.9.9", "10.1.0.2"}} {
		in := after(input(service(), pod(1)), Decide(input(service(), pod(1))))
		slice := in.Slices[0]
		slice.Endpoints[0].Addresses = addresses
		for number := range int32(9) {
			if len(addresses) > 1 {
				break // endpoints are looked at where the ports are those asked for
			}
			slice.Ports = append(slice.Ports, discoveryv1.EndpointPort{Name: ptr.To(fmt.Sprint("p", number)),
				Port: ptr.To(number + 1)})
		}
		before := slice.DeepCopy()
		Decide(in)
		if !reflect.DeepEqual(slice, before) {
			t.Errorf("%v: the cache was changed to %+v", addresses, slice)
		}
	}
}
