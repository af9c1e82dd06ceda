package ownerpermissions

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestDecide(t *testing.T) {
	type refs = []metav1.OwnerReference
	of := func(uid types.UID, blocks *bool) metav1.OwnerReference {
		return metav1.OwnerReference{UID: uid, BlockOwnerDeletion: blocks}
	}
	for _, row := range []struct {
		name         string
		updated, old refs
		changes      bool
		blocking     int
	}{
		{"none", nil, refs{}, false, 0},
		{"a new one", refs{of("a", nil)}, nil, true, 0},
		{"a new one that blocks", refs{of("a", new(true))}, nil, true, 1},
		{"the same", refs{of("a", new(true))}, refs{of("a", new(true))}, false, 0},
		{"one that blocks now", refs{of("a", new(true))}, refs{of("a", new(false))}, true, 1},
		{"one that blocks no more", refs{of("a", new(false))}, refs{of("a", new(true))}, true, 0},
		{"another one", refs{of("b", new(true))}, refs{of("a", new(true))}, true, 1},
		{"one less", nil, refs{of("a", new(true))}, true, 0},
		{"one more", refs{of("a", new(true)), of("b", new(true))}, refs{of("a", new(true))}, true, 1},
	} {
		if got := changes(row.updated, row.old); got != row.changes {
			t.Errorf("%s: changes %t", row.name, got)
		}
		if got := blocking(row.updated, row.old); len(got) != row.blocking {
			t.Errorf("%s: blocking %v", row.name, got)
		}
	}
}
