package aggregation

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/utils/ptr"
)

func slice(port string, number int32, endpoints ...discoveryv1.Endpoint) discoveryv1.EndpointSlice {
	return discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4, Endpoints: endpoints,
		Ports: []discoveryv1.EndpointPort{{Name: ptr.To(port), Port: ptr.To(number)}}}
}

func endpoint(ip string, ready *bool) discoveryv1.Endpoint {
	return discoveryv1.Endpoint{Addresses: []string{ip}, Conditions: discoveryv1.EndpointConditions{Ready: ready}}
}

func TestDecideTargets(t *testing.T) {
	ref := &apiregistration.ServiceReference{Namespace: "wardle", Name: "api", Port: ptr.To(int32(443))}
	service := &corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "metrics", Port: 80},
		{Name: "https", Port: 443}}}}
	for _, row := range []struct {
		name    string
		service *corev1.Service
		parts   []discoveryv1.EndpointSlice
		want    []string
		reason  string
	}{
		{"no service", nil, nil, nil, "ServiceNotFound"},
		{"another port", &corev1.Service{}, nil, nil, "ServicePortError"},
		{"no endpoints", service, nil, nil, "EndpointsNotFound"},
		{"another port's", service, []discoveryv1.EndpointSlice{slice("metrics", 8080, endpoint("10.0.0.1", nil))}, nil,
			"MissingEndpoints"},
		{"not ready", service, []discoveryv1.EndpointSlice{slice("https", 8443, endpoint("10.0.0.1", ptr.To(false)))},
			nil, "MissingEndpoints"},
		{"ready or not told", service, []discoveryv1.EndpointSlice{
			slice("https", 8443, endpoint("10.0.0.1", ptr.To(true)), endpoint("10.0.0.2", ptr.To(false))),
			slice("https", 9443, endpoint("fd00::1", nil))}, []string{"10.0.0.1:8443", "[fd00::1]:9443"}, ""},
		{"external", &corev1.Service{Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName,
			ExternalName: "api.example.com"}}, nil, []string{"api.example.com:443"}, ""},
	} {
		got, verdict := decideTargets(ref, row.service, row.parts)
		if !slices.Equal(got, row.want) || verdict.Reason != row.reason {
			t.Errorf("%s: %v, %+v", row.name, got, verdict)
		}
	}
}

func TestDecideAnswer(t *testing.T) {
	version := schema.GroupVersion{Group: "wardle.example.com", Version: "v1"}
	good := `{"groupVersion":"wardle.example.com/v1","resources":[{"name":"flunders","kind":"Flunder"},` +
		`{"name":"flunders/status","kind":"Flunder"}]}`
	for _, row := range []struct {
		name, body string
		code       int
		want       string
	}{
		{"good", good, 200, ""},
		{"empty", `{"groupVersion":"wardle.example.com/v1"}`, 200, ""},
		{"refused", good, 403, "the answer has the status 403, want 200"},
		{"redirect", good, 302, "the status 302"},
		{"garbage", "<html>", 200, "the answer is no APIResourceList"},
		{"another version", `{"groupVersion":"apps/v1"}`, 200, `about the group version "apps/v1"`},
		{"nameless", `{"groupVersion":"wardle.example.com/v1","resources":[{"kind":"A"}]}`, 200,
			"resources[0] of the answer has no name"},
		{"4 MiB", good + strings.Repeat(" ", 4<<20-len(good)), 200, ""},
		{"endless", good + strings.Repeat(" ", 4<<20+1-len(good)), 200, "more than 4194304 bytes"},
	} {
		_, err := decideAnswer(version, row.code, []byte(row.body))
		if (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v, want %q", row.name, err, row.want)
		}
	}
	resources, err := decideAnswer(version, 200, []byte(good))
	if err != nil || len(resources) != 1 || len(resources[0].Subresources) != 1 ||
		resources[0].ResponseKind.Version != "v1" || resources[0].ResponseKind.Group != "wardle.example.com" {
		t.Errorf("the resources are %+v, %v", resources, err)
	}
}

func TestDecideLocal(t *testing.T) {
	remote := &apiregistration.ServiceReference{Namespace: "wardle", Name: "api"}
	for _, row := range []struct {
		spec   apiregistration.APIServiceSpec
		served []string
		want   apiregistration.ConditionStatus
	}{
		{apiregistration.APIServiceSpec{Version: "v1"}, nil, "True"},
		{apiregistration.APIServiceSpec{Version: "v1"}, []string{"v1"}, "True"},
		{apiregistration.APIServiceSpec{Version: "v1", Service: remote}, []string{"v1"}, "True"},
		{apiregistration.APIServiceSpec{Version: "v2", Service: remote}, []string{"v1"}, "False"},
	} {
		if got := decideLocal(&row.spec, row.served); got.Status != row.want || got.Reason != "Local" {
			t.Errorf("%+v: %+v", row, got)
		}
	}
}

func TestDecideStatus(t *testing.T) {
	earlier, now := time.Unix(1000, 0), time.Unix(2000, 0)
	first, changed := decideStatus(apiregistration.APIServiceStatus{Conditions: []apiregistration.APIServiceCondition{
		{Type: "Other"}}}, passed, earlier)
	if !changed || len(first.Conditions) != 2 || first.Conditions[0].Type != "Other" {
		t.Fatalf("the first: %+v", first)
	}
	if _, changed := decideStatus(first, passed, now); changed {
		t.Error("the same verdict is written again")
	}
	failed, changed := decideStatus(first, unavailable("MissingEndpoints", "none"), now)
	if c := failed.Conditions[1]; !changed || c.Status != "False" || c.Reason != "MissingEndpoints" ||
		!c.LastTransitionTime.Equal(ptr.To(metav1.NewTime(now))) {
		t.Errorf("a failure: %+v", c)
	}
	other, changed := decideStatus(failed, unavailable("ServiceNotFound", "none"), now.Add(time.Hour))
	if c := other.Conditions[1]; !changed || c.Reason != "ServiceNotFound" ||
		!c.LastTransitionTime.Equal(ptr.To(metav1.NewTime(now))) {
		t.Errorf("another reason: %+v, want the time of the first failure", c)
	}
}

// The version of the highest priority is preferred; of equal ones the more stable and newer.
func TestDecideGroup(t *testing.T) {
	if _, ok := decideGroup("g", nil, nil); ok {
		t.Error("there is a group without versions")
	}
	spec := func(version string, priority int32) *apiregistration.APIServiceSpec {
		return &apiregistration.APIServiceSpec{Group: "g", Version: version, VersionPriority: priority}
	}
	group, _ := decideGroup("g", []*apiregistration.APIServiceSpec{spec("v1beta1", 10), spec("v1", 10), spec("v2", 10),
		spec("v1alpha1", 20)}, nil)
	var got []string
	for _, version := range group.Versions {
		got = append(got, version.GroupVersion)
	}
	if !slices.Equal(got, []string{"g/v1alpha1", "g/v2", "g/v1", "g/v1beta1"}) ||
		group.PreferredVersion.Version != "v1alpha1" {
		t.Errorf("the versions are %v, preferred is %s", got, group.PreferredVersion.Version)
	}
}

// What is defined is told beside what is handed on, as of the priority 100; a version that is both is told once.
func TestDecideGroupOfDefinedVersions(t *testing.T) {
	for _, row := range []struct {
		priority int32
		want     []string
	}{
		{99, []string{"g/v2", "g/v1", "g/v3"}},
		{100, []string{"g/v3", "g/v2", "g/v1"}},
		{101, []string{"g/v3", "g/v2", "g/v1"}},
	} {
		group, _ := decideGroup("g", []*apiregistration.APIServiceSpec{
			{Group: "g", Version: "v3", VersionPriority: row.priority},
			{Group: "g", Version: "v1", VersionPriority: 100},
		}, []string{"v1", "v2"})
		var got []string
		for _, version := range group.Versions {
			got = append(got, version.GroupVersion)
		}
		if !slices.Equal(got, row.want) {
			t.Errorf("beside one of the priority %d: %v, want %v", row.priority, got, row.want)
		}
	}
}
