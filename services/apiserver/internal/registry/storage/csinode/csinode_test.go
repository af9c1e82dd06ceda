package csinode

import (
	"strings"
	"testing"

	storagev1 "k8s.io/api/storage/v1"

	"keelson.dev/kit/fieldcheck/fieldtest"
	"keelson.dev/services/apiserver/internal/registry/table/tabletest"
)

func node(drivers ...storagev1.CSINodeDriver) *storagev1.CSINode {
	return &storagev1.CSINode{Spec: storagev1.CSINodeSpec{Drivers: drivers}}
}

func disk(edit func(*storagev1.CSINodeDriver)) storagev1.CSINodeDriver {
	d := storagev1.CSINodeDriver{Name: "disk", NodeID: "1"}
	edit(&d)
	return d
}

func count(n int32) storagev1.CSINodeDriver {
	return disk(func(d *storagev1.CSINodeDriver) { d.Allocatable = &storagev1.VolumeNodeResources{Count: &n} })
}

func known(id string) storagev1.CSINodeDriver {
	return disk(func(d *storagev1.CSINodeDriver) { d.NodeID = id })
}

func keys(keys ...string) storagev1.CSINodeDriver {
	return disk(func(d *storagev1.CSINodeDriver) { d.TopologyKeys = keys })
}

func TestValidate(t *testing.T) {
	for _, row := range []struct {
		name string
		node *storagev1.CSINode
		want []string
	}{
		{"no drivers", node(), nil},
		{"plain", node(known("1")), nil},
		{"twice", node(known("1"), known("2")), []string{`spec.drivers[1].name: Duplicate value: "disk"`}},
		{"nothing", node(storagev1.CSINodeDriver{}),
			[]string{"spec.drivers[0].name: Required value", "spec.drivers[0].nodeID: Required value"}},
		{"longest ID", node(known(strings.Repeat("i", 256))), nil},
		{"one longer", node(known(strings.Repeat("i", 257))),
			[]string{"spec.drivers[0].nodeID: Too long: may not be more than 256 bytes"}},
		{"no room", node(count(0)), nil},
		{"less", node(count(-1)), []string{"spec.drivers[0].allocatable.count: Invalid value: -1: must be greater"}},
		{"keys", node(keys("example.com/zone", "rack")), nil},
		{"malformed keys", node(keys("rack", "rack", "a b")),
			[]string{`spec.drivers[0].topologyKeys[1]: Duplicate value: "rack"`,
				`spec.drivers[0].topologyKeys[2]: Invalid value: "a b"`}},
	} {
		t.Run(row.name, func(t *testing.T) { fieldtest.Check(t, Validate(row.node), row.want...) })
	}
}

func TestValidateUpdate(t *testing.T) {
	other := storagev1.CSINodeDriver{Name: "other", NodeID: "1"}
	for _, row := range []struct {
		name    string
		to, old *storagev1.CSINode
		want    []string
	}{
		{"a driver comes", node(known("1"), other), node(known("1")), nil},
		{"a driver goes", node(other), node(known("1"), other), nil},
		{"another ID", node(other, known("2")), node(known("1"), other),
			[]string{`spec.drivers[1]: Invalid value: "disk": field is immutable`}},
		{"other keys", node(keys("rack")), node(keys("zone")),
			[]string{`spec.drivers[0]: Invalid value: "disk": field is immutable`}},
		{"another count", node(count(5)), node(count(6)), nil},
		{"no count any more", node(known("1")), node(count(6)), nil},
	} {
		t.Run(row.name, func(t *testing.T) { fieldtest.Check(t, ValidateUpdate(row.to, row.old), row.want...) })
	}
}

func TestHealthIsDropped(t *testing.T) {
	n := node()
	n.Status.StorageHealth = []storagev1.StorageHealth{{Name: "disk"}}
	updated := n.DeepCopy()
	Resource.ObjectWrites().PrepareForCreate(n)
	Resource.ObjectWrites().PrepareForUpdate(updated, node())
	if n.Status.StorageHealth != nil || updated.Status.StorageHealth != nil {
		t.Errorf("%v, %v", n.Status, updated.Status)
	}
}

func TestColumns(t *testing.T) { tabletest.Golden(t, Resource) }
