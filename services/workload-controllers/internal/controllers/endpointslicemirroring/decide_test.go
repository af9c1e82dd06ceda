package endpointslicemirroring

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/workload-controllers/internal/endpointfeed"
)

func endpoints(subsets ...corev1.EndpointSubset) *corev1.Endpoints {
	return &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "db", UID: "db-uid",
		Labels: map[string]string{"team": "a"}, Annotations: map[string]string{"note": "b",
			"kubectl.kubernetes.io/last-applied-configuration": "{}"}}, Subsets: subsets}
}

func subset(port int32, ready, other string) corev1.EndpointSubset {
	s := corev1.EndpointSubset{Ports: []corev1.EndpointPort{{Name: "sql", Port: port, Protocol: "TCP"}}}
	for _, ip := range strings.Fields(ready) {
		s.Addresses = append(s.Addresses, corev1.EndpointAddress{IP: ip})
	}
	for _, ip := range strings.Fields(other) {
		s.NotReadyAddresses = append(s.NotReadyAddresses, corev1.EndpointAddress{IP: ip})
	}
	return s
}

var service = &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "db"}}

func summary(all []*discoveryv1.EndpointSlice) []string {
	var lines []string
	for _, slice := range all {
		line := string(slice.AddressType)
		for _, port := range slice.Ports {
			line += fmt.Sprintf(" %s:%d", *port.Name, *port.Port)
		}
		for _, e := range slice.Endpoints {
			line += " " + strings.Join(e.Addresses, "+") + map[bool]string{false: "!"}[*e.Conditions.Ready]
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return lines
}

func writes(plan endpointfeed.Plan) int {
	return len(plan.Create) + len(plan.Update) + len(plan.Delete)
}

// settled is the input after the first pass.
func settled(e *corev1.Endpoints) Input {
	in := Input{Endpoints: e, Service: service, MaxEndpoints: 1000}
	for i, slice := range Decide(in).Create {
		slice.Name, slice.ResourceVersion = fmt.Sprint("db-", i), "5"
		in.Slices = append(in.Slices, slice)
	}
	return in
}

func TestDecide(t *testing.T) {
	for _, row := range []struct {
		name string
		from *corev1.Endpoints
		want []string
	}{
		{"ready and not", endpoints(subset(5432, "10.0.0.1 10.0.0.2", "10.0.0.3")),
			[]string{"IPv4 sql:5432 10.0.0.1 10.0.0.2 10.0.0.3!"}},
		{"two families", endpoints(subset(5432, "10.0.0.1 fd00::1", "")),
			[]string{"IPv4 sql:5432 10.0.0.1", "IPv6 sql:5432 fd00::1"}},
		{"two ports", endpoints(subset(1, "10.0.0.1", ""), subset(2, "10.0.0.2", "")),
			[]string{"IPv4 sql:1 10.0.0.1", "IPv4 sql:2 10.0.0.2"}},
		{"two subsets of one port", endpoints(subset(1, "10.0.0.1", ""), subset(1, "10.0.0.2", "")),
			[]string{"IPv4 sql:1 10.0.0.1 10.0.0.2"}},
		{"without addresses", endpoints(subset(1, "", "")), nil},
		{"without subsets", endpoints(), nil},
		{"no address", endpoints(subset(1, "db.example.com", "")), nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			before := row.from.DeepCopy()
			plan := Decide(Input{Endpoints: row.from, Service: service, MaxEndpoints: 1000})
			if got := summary(plan.Create); !slices.Equal(got, row.want) {
				t.Errorf("slices %q, want %q", got, row.want)
			}
			for _, slice := range plan.Create {
				owner := metav1.GetControllerOf(slice)
				if slice.GenerateName != "db-" || !reflect.DeepEqual(slice.Labels, map[string]string{"team": "a",
					"kubernetes.io/service-name":             "db",
					"endpointslice.kubernetes.io/managed-by": "endpointslicemirroring-controller.k8s.io"}) ||
					!reflect.DeepEqual(slice.Annotations, map[string]string{"note": "b"}) ||
					owner == nil || owner.UID != types.UID("db-uid") || owner.Kind != "Endpoints" {
					t.Errorf("metadata %+v", slice.ObjectMeta)
				}
			}
			if again := Decide(settled(row.from)); writes(again) > 0 {
				t.Errorf("a second pass writes %+v", again)
			}
			if !reflect.DeepEqual(row.from, before) {
				t.Error("the input was changed")
			}
		})
	}
}

func TestWhatIsMirrored(t *testing.T) {
	lives := endpoints(subset(1, "10.0.0.1", ""))
	labelled := func(value string) *corev1.Endpoints {
		e := lives.DeepCopy()
		e.Labels["endpointslice.kubernetes.io/skip-mirror"] = value
		return e
	}
	lock, going := lives.DeepCopy(), lives.DeepCopy()
	lock.Annotations["control-plane.alpha.kubernetes.io/leader"] = "{}"
	going.DeletionTimestamp = &metav1.Time{}
	selecting := service.DeepCopy()
	selecting.Spec.Selector = map[string]string{"app": "db"}
	for _, row := range []struct {
		name      string
		endpoints *corev1.Endpoints
		service   *corev1.Service
		mirrored  bool
	}{
		{"a user's own", lives, service, true},
		{"of a Service with a selector", lives, selecting, false},
		{"without a Service", lives, nil, false},
		{"to skip", labelled("true"), service, false},
		{"not to skip", labelled("false"), service, true},
		{"a lock", lock, service, false},
		{"on its way out", going, service, false},
	} {
		in := Input{Endpoints: row.endpoints, Service: row.service, MaxEndpoints: 1000}
		if plan := Decide(in); (len(plan.Create) == 1) != row.mirrored || writes(plan) > 1 {
			t.Errorf("%s: %+v", row.name, plan)
		}
		// What was mirrored before goes when it is not any more.
		in.Slices = settled(lives).Slices
		if plan := Decide(in); (len(plan.Delete) == 1) == row.mirrored || len(plan.Create) > 0 {
			t.Errorf("%s, mirrored before: %+v", row.name, plan)
		}
	}
}

func TestChanges(t *testing.T) {
	first := endpoints(subset(1, "10.0.0.1", ""))
	for name, row := range map[string]struct {
		change                 func(*Input)
		create, update, delete int
	}{
		"an address":       {func(in *Input) { in.Endpoints = endpoints(subset(1, "10.0.0.1 10.0.0.2", "")) }, 0, 1, 0},
		"readiness":        {func(in *Input) { in.Endpoints = endpoints(subset(1, "", "10.0.0.1")) }, 0, 1, 0},
		"a port":           {func(in *Input) { in.Endpoints = endpoints(subset(2, "10.0.0.1", "")) }, 1, 0, 1},
		"all addresses go": {func(in *Input) { in.Endpoints = endpoints() }, 0, 0, 1},
		"a label": {func(in *Input) {
			in.Endpoints = in.Endpoints.DeepCopy()
			in.Endpoints.Labels["team"] = "b"
		}, 0, 1, 0},
		"an annotation": {func(in *Input) {
			in.Endpoints = in.Endpoints.DeepCopy()
			in.Endpoints.Annotations["note"] = "c"
		}, 0, 1, 0},
		"somebody has written": {func(in *Input) { in.Slices[0].Endpoints[0].Addresses = []string{"10.9.9.9"} }, 0, 1,
			0},
		"a second one": {func(in *Input) {
			twin := in.Slices[0].DeepCopy()
			twin.Name = "twin"
			in.Slices = append(in.Slices, twin)
		}, 0, 0, 1},
		"one of earlier Endpoints": {func(in *Input) { in.Slices[0].OwnerReferences[0].UID = "old" }, 1, 0, 1},
	} {
		in := settled(first)
		row.change(&in)
		plan := Decide(in)
		if len(plan.Create) != row.create || len(plan.Update) != row.update || len(plan.Delete) != row.delete {
			t.Errorf("%s: %d, %d, %d", name, len(plan.Create), len(plan.Update), len(plan.Delete))
		}
		for _, slice := range plan.Update {
			if slice == in.Slices[0] || slice.ResourceVersion != "5" {
				t.Errorf("%s: the cache's own slice is changed, or without a condition", name)
			}
		}
	}
}

// Of each subset 1,000 addresses are mirrored, and no more go into a slice.
func TestCapacity(t *testing.T) {
	var many [1001]string
	for i := range many {
		many[i] = fmt.Sprintf("10.0.%d.%d", i/250, i%250+1)
	}
	for n, want := range map[int]int{1000: 1000, 1001: 1000} {
		plan := Decide(Input{Endpoints: endpoints(subset(1, strings.Join(many[:n], " "), ""), subset(1, "10.9.9.9",
			"")), Service: service, MaxEndpoints: 1000})
		if len(plan.Create) != 1 || len(plan.Create[0].Endpoints) != want {
			t.Errorf("%d addresses make %d slices", n, len(plan.Create))
		}
	}
}
