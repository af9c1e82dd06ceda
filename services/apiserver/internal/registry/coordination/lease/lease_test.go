package lease

import (
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/fieldcheck/fieldtest"
)

func TestValidate(t *testing.T) {
	for _, row := range []struct {
		name string
		spec coordinationv1.LeaseSpec
		want []string
	}{
		{"empty", coordinationv1.LeaseSpec{}, nil},
		{"held", coordinationv1.LeaseSpec{HolderIdentity: ptr.To("a"), LeaseDurationSeconds: ptr.To[int32](12),
			LeaseTransitions: ptr.To[int32](0)}, nil},
		{"no time at all", coordinationv1.LeaseSpec{LeaseDurationSeconds: ptr.To[int32](0)},
			[]string{"spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0"}},
		{"negative transitions", coordinationv1.LeaseSpec{LeaseTransitions: ptr.To[int32](-1)},
			[]string{"spec.leaseTransitions: Invalid value: -1"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			fieldtest.Check(t, Validate(&coordinationv1.Lease{Spec: row.spec}),
				row.want...)
		})
	}
}
