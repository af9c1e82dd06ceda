package podgroup

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// member is a field of which one of several is set.
type member struct {
	name string
	set  bool
}

// exactlyOne wants one of the fields to be set and no other.
func exactlyOne(path *field.Path, members ...member) field.ErrorList {
	var all, set []string
	for _, m := range members {
		quoted := "`" + m.name + "`"
		all = append(all, quoted)
		if m.set {
			set = append(set, quoted)
		}
	}
	switch names := strings.Join(all, ", "); len(set) {
	case 0:
		return field.ErrorList{field.Invalid(path, "", "must specify one of: "+names)}
	case 1:
		return nil
	default:
		return field.ErrorList{field.Invalid(path, fmt.Sprintf("{%s}", strings.Join(set, ", ")),
			"must specify exactly one of: "+names)}
	}
}
