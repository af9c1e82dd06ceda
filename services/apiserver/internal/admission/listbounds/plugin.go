// Package listbounds is an admission plugin that bounds the lists which patches merge, in every object: neither a write
// nor the next patch may keep the server busy for seconds.
package listbounds

import (
	"context"
	"io"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	value := reflect.Indirect(reflect.ValueOf(a.GetObject()))
	if value.Kind() != reflect.Struct {
		return nil
	}
	if errs := tooLong(value, shapeOf(value.Type()), nil); len(errs) > 0 {
		return apierrors.NewInvalid(a.GetKind().GroupKind(), a.GetName(), errs)
	}
	return nil
}
