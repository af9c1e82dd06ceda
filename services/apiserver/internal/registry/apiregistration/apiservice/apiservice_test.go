package apiservice

import (
	"testing"

	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/fieldcheck/fieldtest"
	"keelson.dev/services/apiserver/internal/registry/table/tabletest"
)

func remote(change ...func(*apiregistration.APIService)) *apiregistration.APIService {
	a := &apiregistration.APIService{Spec: apiregistration.APIServiceSpec{
		Group: "wardle.example.com", Version: "v1alpha1", GroupPriorityMinimum: 2000, VersionPriority: 200,
		Service: &apiregistration.ServiceReference{Namespace: "aggregator", Name: "api"},
	}}
	a.Name = "v1alpha1.wardle.example.com"
	Resource.Default(a)
	for _, c := range change {
		c(a)
	}
	return a
}

func TestValidate(t *testing.T) {
	type service = apiregistration.APIService
	for _, row := range []struct {
		change func(*service)
		want   []string
	}{
		{func(*service) {}, nil},
		{func(a *service) { a.Name = "v1.wardle.example.com" },
			[]string{"metadata.name: Invalid value: \"v1.wardle.example.com\": must be `spec.version+\".\"+spec.group`: " +
				"\"v1alpha1.wardle.example.com\""}},
		{func(a *service) { a.Name, a.Spec.Group, a.Spec.Version = "v1.", "", "v1" }, nil},
		{func(a *service) { a.Name, a.Spec.Group, a.Spec.Version = "v2.", "", "v2" },
			[]string{"spec.group: Required value: only v1 may have an empty group"}},
		{func(a *service) { a.Name, a.Spec.Group = "v1alpha1.A_b", "A_b" },
			[]string{`spec.group: Invalid value: "A_b"`}},
		{func(a *service) { a.Name, a.Spec.Version = "1.wardle.example.com", "1" },
			[]string{`spec.version: Invalid value: "1"`}},
		{func(a *service) { a.Spec.GroupPriorityMinimum = 20000 }, nil},
		{func(a *service) { a.Spec.GroupPriorityMinimum = 20001 },
			[]string{"spec.groupPriorityMinimum: Invalid value: 20001: must be between 1 and 20000, inclusive"}},
		{func(a *service) { a.Spec.GroupPriorityMinimum = 0 },
			[]string{"spec.groupPriorityMinimum: Invalid value: 0"}},
		{func(a *service) { a.Spec.VersionPriority = 1000 }, nil},
		{func(a *service) { a.Spec.VersionPriority = 1001 },
			[]string{"spec.versionPriority: Invalid value: 1001: must be between 1 and 1000, inclusive"}},
		{func(a *service) { a.Spec.VersionPriority = 0 }, []string{"spec.versionPriority: Invalid value: 0"}},
		{func(a *service) { a.Spec.Service = nil }, nil},
		{func(a *service) { a.Spec.Service, a.Spec.CABundle = nil, []byte("x") },
			[]string{`spec.caBundle: Invalid value: "1 bytes": local APIServices may not have a caBundle`}},
		{func(a *service) { a.Spec.Service, a.Spec.InsecureSkipTLSVerify = nil, true },
			[]string{"spec.insecureSkipTLSVerify: Invalid value: true: local APIServices may not have"}},
		{func(a *service) { a.Spec.Service = &apiregistration.ServiceReference{Port: ptr.To(int32(65536))} },
			[]string{"spec.service.namespace: Required value", "spec.service.name: Required value",
				"spec.service.port: Invalid value: 65536"}},
		{func(a *service) { a.Spec.Service.Port = ptr.To(int32(65535)) }, nil},
		{func(a *service) { a.Spec.InsecureSkipTLSVerify, a.Spec.CABundle = true, []byte("x") },
			[]string{"spec.insecureSkipTLSVerify: Invalid value: true: may not be true if caBundle is present"}},
	} {
		fieldtest.Check(t, Validate(remote(row.change)), row.want...)
	}
}

func TestValidateStatusUpdate(t *testing.T) {
	for status, want := range map[apiregistration.ConditionStatus][]string{
		"True": nil, "False": nil, "Unknown": nil, "yes": {`status.conditions[0].status: Unsupported value: "yes"`},
	} {
		a := remote()
		a.Status.Conditions = []apiregistration.APIServiceCondition{{Type: apiregistration.Available, Status: status}}
		fieldtest.Check(t, ValidateStatusUpdate(a, remote()), want...)
	}
}

func TestDefaultPort(t *testing.T) {
	if got := *remote().Spec.Service.Port; got != 443 {
		t.Errorf("the port is %d by default, want 443", got)
	}
}

func TestColumns(t *testing.T) { tabletest.Golden(t, Resource) }
