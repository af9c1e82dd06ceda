package nodeidentity

import (
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
)

func TestOf(t *testing.T) {
	for _, row := range []struct {
		user   string
		groups []string
		name   string
		isNode bool
	}{
		{"system:node:n1", []string{"system:nodes", "system:authenticated"}, "n1", true},
		{"system:node:n1", []string{"system:authenticated"}, "", false},
		{"ann", []string{"system:nodes"}, "", false},
		{"system:node:", []string{"system:nodes"}, "", true},
	} {
		if name, isNode := Of(&user.DefaultInfo{Name: row.user, Groups: row.groups}); isNode != row.isNode ||
			name != row.name {
			t.Errorf("%s in %v is node %q, %v, want %q, %v", row.user, row.groups, name, isNode, row.name, row.isNode)
		}
	}
	if name, isNode := Of(nil); isNode || name != "" {
		t.Errorf("nobody is node %q, %v", name, isNode)
	}
}
