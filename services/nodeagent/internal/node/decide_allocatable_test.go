package node

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func list(pairs ...string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		out[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return out
}

// Pods may request the capacity without what is reserved and without the headroom; all of them together are limited
// to the capacity without what is reserved. The machine has 2 cores, 4Gi of memory, 1Gi of disk and room for 110
// Pods.
func TestAllocatable(t *testing.T) {
	for _, r := range []struct {
		name                string
		reserved, headroom  corev1.ResourceList
		allocatable, limits corev1.ResourceList
	}{
		{"nothing is reserved", nil, nil, list("cpu", "2", "memory", "4Gi", "ephemeral-storage", "1Gi", "pods", "110"),
			list("cpu", "2", "memory", "4Gi", "ephemeral-storage", "1Gi", "pods", "110")},
		{"reserved and headroom", list("cpu", "500m", "memory", "1Gi", "ephemeral-storage", "100Mi"),
			list("memory", "100Mi", "ephemeral-storage", "24Mi"),
			list("cpu", "1500m", "memory", "2972Mi", "ephemeral-storage", "900Mi", "pods", "110"),
			list("cpu", "1500m", "memory", "3Gi", "ephemeral-storage", "924Mi", "pods", "110")},
		{"more than there is", list("cpu", "3"), list("memory", "5Gi"),
			list("cpu", "0", "memory", "0", "ephemeral-storage", "1Gi", "pods", "110"),
			list("cpu", "0", "memory", "4Gi", "ephemeral-storage", "1Gi", "pods", "110")},
		{"processes", list("pid", "1000"), nil,
			list("cpu", "2", "memory", "4Gi", "ephemeral-storage", "1Gi", "pods", "110"),
			list("cpu", "2", "memory", "4Gi", "ephemeral-storage", "1Gi", "pods", "110", "pid", "31768")},
	} {
		f := facts()
		f.MaxPIDs, f.Reserved, f.Headroom = 32768, r.reserved, r.headroom
		for what, pair := range map[string][2]corev1.ResourceList{"allocatable": {f.Allocatable(), r.allocatable},
			"the Pods' limits": {f.PodLimits(true), r.limits}, "not held": {f.PodLimits(false), facts().capacity()}} {
			if !equalLists(pair[0], pair[1]) {
				t.Errorf("%s: %s %v, want %v", r.name, what, pair[0], pair[1])
			}
		}
		if !equalLists(f.capacity(), facts().capacity()) {
			t.Errorf("%s: the capacity has become %v", r.name, f.capacity())
		}
	}
}

func equalLists(a, b corev1.ResourceList) bool {
	if len(a) != len(b) {
		return false
	}
	for name, quantity := range a {
		if other, ok := b[name]; !ok || quantity.Cmp(other) != 0 {
			return false
		}
	}
	return true
}

// A reservation must leave something of each resource for Pods.
func TestCheckReserved(t *testing.T) {
	for _, r := range []struct {
		reserved corev1.ResourceList
		want     string
	}{
		{list("cpu", "1999m", "memory", "4194303Ki", "ephemeral-storage", "0", "pid", "32767"), ""},
		{list("cpu", "2"), "2 of cpu is reserved, which leaves Pods nothing of 2"},
		{list("memory", "4Gi"), "4Gi of memory is reserved, which leaves Pods nothing of 4Gi"},
		{list("memory", "5Gi"), "5Gi of memory is reserved, which leaves Pods nothing of 4Gi"},
		{list("pid", "32768"), "32768 of pid is reserved, which leaves Pods nothing of 32768"},
	} {
		f := facts()
		f.MaxPIDs, f.Reserved = 32768, r.reserved
		err := f.CheckReserved()
		if (err == nil) != (r.want == "") || err != nil && !strings.Contains(err.Error(), r.want) {
			t.Errorf("%v: %v, want %q", r.reserved, err, r.want)
		}
	}
}
