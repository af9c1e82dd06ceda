package rest

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericrest "k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"

	"keelson.dev/services/apiserver/internal/resource"
)

// deleteRules are what a resource's Strategy says of deletes. Each of them may be nil.
type deleteRules struct {
	validate func(runtime.Object) error
	warnings func(*metav1.DeleteOptions) []string
}

func deletesOf[O resource.Object](s resource.Strategy[O]) deleteRules {
	rules := deleteRules{warnings: s.WarningsOnDelete}
	if s.ValidateDelete != nil {
		rules.validate = func(obj runtime.Object) error { return s.ValidateDelete(obj.(O)) }
	}
	return rules
}

// before asks the resource before anybody else may admit the delete.
func (r deleteRules) before(validate genericrest.ValidateObjectFunc) genericrest.ValidateObjectFunc {
	if r.validate == nil {
		return validate
	}
	return func(ctx context.Context, obj runtime.Object) error {
		if err := r.validate(obj); err != nil {
			return err
		}
		return validate(ctx, obj)
	}
}

// warn tells the client what the resource warns of.
func (r deleteRules) warn(ctx context.Context, options *metav1.DeleteOptions) {
	if r.warnings == nil || options == nil {
		return
	}
	for _, text := range r.warnings(options) {
		warning.AddWarning(ctx, "", text)
	}
}
