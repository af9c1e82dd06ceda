package resourceclaim

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apiserver/pkg/authentication/user"
)

// What a driver has said of a device goes with the device.
func TestPrepareStatus(t *testing.T) {
	says := all(reports("gpu-0", nil), reports("gpu-1", nil))
	for name, row := range map[string]struct {
		from, to func(*status)
		left     []string
	}{
		"kept": {all(has("gpu-0", "gpu-1"), says), all(has("gpu-0", "gpu-1"), says),
			[]string{"gpu-0", "gpu-1"}},
		"one taken":          {all(has("gpu-0", "gpu-1"), says), all(has("gpu-1"), says), []string{"gpu-1"}},
		"all taken":          {all(has("gpu-0", "gpu-1"), says), says, nil},
		"of none it had yet": {none, says, []string{"gpu-0", "gpu-1"}},
	} {
		c, old := newClaim(row.to), newClaim(row.from)
		c.Labels, old.Labels = map[string]string{"a": "new"}, map[string]string{"a": "old"}
		Resource.StatusWrites().PrepareForUpdate(c, old)
		var left []string
		for _, d := range c.Status.Devices {
			left = append(left, d.Device)
		}
		if !slices.Equal(left, row.left) || c.Labels["a"] != "old" || left == nil && c.Status.Devices != nil {
			t.Errorf("%s: %q are left, labels %v", name, left, c.Labels)
		}
	}
	c := newClaim(result(func(r *resourcev1.DeviceRequestAllocationResult) {
		r.SkipNodeOperations = []resourcev1.SkipNodeOperation{"*"}
	}))
	prepareStatus(c, newClaim())
	if left := c.Status.Allocation.Devices.Results[0].SkipNodeOperations; left != nil {
		t.Errorf("keeps %v", left)
	}
}

func TestWhatAWriteChanges(t *testing.T) {
	other := func(s *status) {
		s.Devices = append(s.Devices, resourcev1.AllocatedDeviceStatus{Driver: "another.example.com", Device: "x"})
	}
	bad := func(d *resourcev1.AllocatedDeviceStatus) { conditions(1)(d) }
	for name, row := range map[string]struct {
		from, to func(*status)
		rebinds  bool
		drivers  []string
	}{
		"nothing":         {has("gpu-0"), has("gpu-0"), false, nil},
		"gives a device":  {none, has("gpu-0"), true, nil},
		"takes it":        {has("gpu-0"), none, true, nil},
		"gives it to one": {has("gpu-0"), all(has("gpu-0"), serves(1)), true, nil},
		"says something": {has("gpu-0"), all(has("gpu-0"), reports("gpu-0", nil)), false,
			[]string{"gpu.example.com"}},
		"says the same": {all(has("gpu-0"), reports("gpu-0", nil)), all(has("gpu-0"), reports("gpu-0", nil)),
			false, nil},
		"says something else": {all(has("gpu-0"), reports("gpu-0", nil)), all(has("gpu-0"), reports("gpu-0", bad)),
			false, []string{"gpu.example.com"}},
		"says nothing more": {all(has("gpu-0"), reports("gpu-0", nil)), has("gpu-0"), false,
			[]string{"gpu.example.com"}},
		"says it for two": {has("gpu-0"), all(has("gpu-0"), reports("gpu-0", nil), other), false,
			[]string{"another.example.com", "gpu.example.com"}},
		// Who takes a device takes what was said of it.
		"takes all of it":          {all(has("gpu-0"), reports("gpu-0", nil)), none, true, nil},
		"takes, and says it still": {all(has("gpu-0"), reports("gpu-0", nil)), reports("gpu-0", nil), true, nil},
	} {
		now, was := newClaim(row.to), newClaim(row.from)
		if got := rebinds(&now.Status, &was.Status); got != row.rebinds {
			t.Errorf("%s: rebinds: %t", name, got)
		}
		if got := changedDrivers(&now.Status, &was.Status); !slices.Equal(got, row.drivers) {
			t.Errorf("%s: changes what %q say", name, got)
		}
	}
}

func TestNodeOf(t *testing.T) {
	named := func(key string, names ...string) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{
			{Key: key, Operator: corev1.NodeSelectorOpIn, Values: names}}}
	}
	on := func(terms ...corev1.NodeSelectorTerm) func(*status) {
		return all(has("gpu-0"), func(s *status) {
			s.Allocation.NodeSelector = &corev1.NodeSelector{NodeSelectorTerms: terms}
		})
	}
	labelled := named("metadata.name", "n1")
	labelled.MatchExpressions = []corev1.NodeSelectorRequirement{{Key: "a", Operator: "Exists"}}
	other := named("metadata.name", "n1")
	other.MatchFields[0].Operator = corev1.NodeSelectorOpNotIn
	for name, row := range map[string]struct {
		status func(*status)
		want   string
	}{
		"no device":       {none, ""},
		"anywhere":        {has("gpu-0"), ""},
		"one node":        {on(named("metadata.name", "n1")), "n1"},
		"two nodes":       {on(named("metadata.name", "n1", "n2")), ""},
		"either of nodes": {on(named("metadata.name", "n1"), named("metadata.name", "n2")), ""},
		"by a label too":  {on(labelled), ""},
		"all but one":     {on(other), ""},
		"another field":   {on(named("metadata.uid", "n1")), ""},
	} {
		if got := nodeOf(&newClaim(row.status).Status); got != row.want {
			t.Errorf("%s: on %q", name, got)
		}
	}
}

func TestDriverVerbs(t *testing.T) {
	const extra, account = "authentication.kubernetes.io/node-name", "system:serviceaccount:kube-system:gpu"
	far, near := "arbitrary-node:update", "associated-node:update"
	for name, row := range map[string]struct {
		name, node string
		of         []string
		want       []string
	}{
		"of the node":      {account, "n1", []string{"n1"}, []string{near, far}},
		"of another":       {account, "n1", []string{"n2"}, []string{far}},
		"of no node":       {account, "n1", nil, []string{far}},
		"of two":           {account, "n1", []string{"n1", "n2"}, []string{far}},
		"of no device":     {account, "", []string{""}, []string{far}},
		"not of accounts":  {"ann", "n1", []string{"n1"}, []string{far}},
		"the node's agent": {"system:node:n1", "n1", []string{"n1"}, []string{far}},
	} {
		who := &user.DefaultInfo{Name: row.name, Extra: map[string][]string{extra: row.of}}
		if got := driverVerbs(who, row.node, "update"); !slices.Equal(got, row.want) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestServesAdmin(t *testing.T) {
	admin := result(func(r *resourcev1.DeviceRequestAllocationResult) { yes := true; r.AdminAccess = &yes })
	for name, row := range map[string]struct {
		from, to func(*status)
		want     string
	}{
		"nobody":     {none, has("gpu-0"), "<nil>"},
		"somebody":   {none, admin, "status.allocation.devices.results[0].adminAccess"},
		"as it was":  {admin, admin, "<nil>"},
		"no more":    {admin, none, "<nil>"},
		"not at all": {none, none, "<nil>"},
	} {
		now, was := newClaim(row.to), newClaim(row.from)
		if got := servesAdmin(&now.Status, &was.Status).String(); got != row.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}
