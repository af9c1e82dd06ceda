// Package listbounds is an admission plugin that bounds lists in every object: those which patches merge, as neither a
// write nor the next patch may keep the server busy for seconds, and those of what Pods say of other Pods, which the
// scheduler heeds for each of these.
package listbounds

import (
	"context"
	"io"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
)

// PluginName is the name of the plugin, which is Keelson's own.
const PluginName = "ListBounds"

// Plugin refuses objects with longer lists.
type Plugin struct{ *admission.Handler }

var _ admission.ValidationInterface = &Plugin{}

// Register makes the plugin known to the chain.
func Register(plugins *admission.Plugins) {
	plugins.Register(PluginName, func(io.Reader) (admission.Interface, error) {
		return &Plugin{Handler: admission.NewHandler(admission.Create, admission.Update)}, nil
	})
}

// Validate looks at the object as it would be stored.
func (p *Plugin) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	errs := tooLongIn(a.GetObject())
	if len(errs) > 0 && a.GetOperation() == admission.Update {
		errs = grown(errs, tooLongIn(a.GetOldObject()))
	}
	if len(errs) > 0 {
		return apierrors.NewInvalid(a.GetKind().GroupKind(), a.GetName(), errs)
	}
	return nil
}

func tooLongIn(object runtime.Object) field.ErrorList {
	value := reflect.Indirect(reflect.ValueOf(object))
	if value.Kind() != reflect.Struct {
		return nil
	}
	return tooLong(value, shapeOf(value.Type()), nil)
}
