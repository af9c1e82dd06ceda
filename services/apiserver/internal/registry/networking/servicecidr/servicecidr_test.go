package servicecidr

import (
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/kit/fieldcheck/fieldtest"
	"keelson.dev/services/apiserver/internal/registry/table/tabletest"
)

func of(ranges ...string) *networkingv1.ServiceCIDR {
	return &networkingv1.ServiceCIDR{Spec: networkingv1.ServiceCIDRSpec{CIDRs: ranges}}
}

func TestValidate(t *testing.T) {
	const four, six = "10.0.0.0/16", "fd00::/112"
	for _, row := range []struct {
		name   string
		ranges []string
		want   []string
	}{
		{"none", nil, []string{"spec.cidrs: Required value"}},
		{"one", []string{four}, nil},
		{"two", []string{six, four}, nil},
		{"three", []string{four, six, four}, []string{"spec.cidrs: Invalid value"}},
		{"two of a family", []string{four, "10.1.0.0/16"}, []string{"spec.cidrs: Invalid value"}},
		{"none at all", []string{"10.0.0.0", "fd00::1/112"}, []string{`spec.cidrs[0]: Invalid value: "10.0.0.0"`,
			`spec.cidrs[1]: Invalid value: "fd00::1/112"`}},
		{"another way to write it", []string{"FD00::/112"}, []string{"spec.cidrs[0]: Invalid value"}},
	} {
		t.Run(row.name, func(t *testing.T) { fieldtest.Check(t, Validate(of(row.ranges...)), row.want...) })
	}
	fieldtest.Check(t, ValidateUpdate(of(four), of(four)))
	fieldtest.Check(t, ValidateUpdate(of(four, six), of(four)))
	for _, row := range [][2]*networkingv1.ServiceCIDR{{of(six), of(four)}, {of(four), of(four, six)},
		{of(six, four), of(four)}, {of(six, four), of(four, six)}} {
		fieldtest.Check(t, ValidateUpdate(row[0], row[1]), "spec.cidrs: Invalid value")
	}
}

func TestValidateStatusUpdate(t *testing.T) {
	c := of("10.0.0.0/16")
	c.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: "Maybe", Reason: "R",
		LastTransitionTime: metav1.Now()}}
	fieldtest.Check(t, ValidateStatusUpdate(c, c), "status.conditions[0].status: Unsupported value")
}

func TestColumns(t *testing.T) { tabletest.Golden(t, Resource) }
