// Package device is what the kinds of group resource.k8s.io share: the defaults and the checks of what a claim asks
// for, of selectors of devices, of what drivers are told, and of the names of drivers, pools and devices.
//
// The library generates checks of what the tags of its types say; Generated runs them. What stands here beside them is
// what the tags do not say.
package device

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/operation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// options are those that the generated checks ask for: features that are off.
var options = map[string]bool{"DRAPartitionableDevicesType": false}

// generated is a check as the library generates it.
type generated[T any] func(ctx context.Context, op operation.Operation, path *field.Path, obj, old *T) field.ErrorList

// Generated returns what the library's check finds in obj, the successor of old; a new object has none. What has not
// changed passes.
func Generated[T any](check generated[T], obj, old *T, path *field.Path) field.ErrorList {
	op := operation.Operation{Type: operation.Create, Options: options}
	if old != nil {
		op.Type = operation.Update
	}
	return check(context.Background(), op, path, obj, old)
}

// Beside appends to what the library's check has found what is ours, without what says the same of the same field.
func Beside(found, own field.ErrorList) field.ErrorList {
	known := len(found)
	for _, err := range own {
		said := slices.ContainsFunc(found[:known], func(other *field.Error) bool {
			return other.Field == err.Field && other.Type == err.Type
		})
		if !said {
			found = append(found, err)
		}
	}
	return found
}
