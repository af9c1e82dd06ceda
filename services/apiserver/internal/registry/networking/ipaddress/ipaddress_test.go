package ipaddress

import (
	"testing"

	networkingv1 "k8s.io/api/networking/v1"

	"keelson.dev/kit/fieldcheck/fieldtest"
	"keelson.dev/services/apiserver/internal/registry/table/tabletest"
)

func of(parent networkingv1.ParentReference) *networkingv1.IPAddress {
	return &networkingv1.IPAddress{Spec: networkingv1.IPAddressSpec{ParentRef: &parent}}
}

func TestName(t *testing.T) {
	for name, valid := range map[string]bool{"10.0.0.1": true, "fd00::1": true, "010.0.0.1": false, "10.0.0": false,
		"FD00::1": false, "fd00:0::1": false, "::ffff:10.0.0.1": false, "fe80::1%eth0": false, "web": false} {
		if got := len(validName(name, false)) == 0; got != valid {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestValidate(t *testing.T) {
	fieldtest.Check(t, Validate(&networkingv1.IPAddress{}), "spec.parentRef: Required value")
	fieldtest.Check(t, Validate(of(networkingv1.ParentReference{})), "spec.parentRef.resource: Required value",
		"spec.parentRef.name: Required value")
	fieldtest.Check(t, Validate(of(networkingv1.ParentReference{Group: "a b", Resource: "a/b", Namespace: "a.b",
		Name: ".."})), "spec.parentRef.group: Invalid value", "spec.parentRef.resource: Invalid value",
		"spec.parentRef.namespace: Invalid value", "spec.parentRef.name: Invalid value")
	good := networkingv1.ParentReference{Group: "example.com", Resource: "gateways", Namespace: "ns", Name: "a"}
	fieldtest.Check(t, Validate(of(good)))
	other := good
	other.Name = "b"
	fieldtest.Check(t, ValidateUpdate(of(good), of(good)))
	fieldtest.Check(t, ValidateUpdate(of(other), of(good)), "spec.parentRef: Invalid value")
}

func TestColumns(t *testing.T) { tabletest.Golden(t, Resource) }
