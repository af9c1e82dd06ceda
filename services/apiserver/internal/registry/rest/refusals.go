package rest

import (
	"context"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

type refusalsKey struct{}

// WithRefusals returns a context and the list of what else, beyond the Strategy's rules, is wrong with the object that
// is written in it: a storage that gives an object something before the write fills it in. The client is told of all
// together.
func WithRefusals(ctx context.Context) (context.Context, *field.ErrorList) {
	errs := &field.ErrorList{}
	return context.WithValue(ctx, refusalsKey{}, errs), errs
}

func refusals(ctx context.Context) field.ErrorList {
	if errs, ok := ctx.Value(refusalsKey{}).(*field.ErrorList); ok {
		return *errs
	}
	return nil
}
