// Package listbounds is an admission plugin that bounds the lists which patches merge, in every object: neither a write
// nor the next patch may keep the server busy for seconds.
package listbounds

import (
	"context"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/admission"
)

// Plugin refuses objects with longer lists.
type Plugin struct{ *admission.Handler }

var _ admission.ValidationInterface = &Plugin{}

// New returns the plugin.
func New() *Plugin { return &Plugin{admission.NewHandler(admission.Create, admission.Update)} }

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
