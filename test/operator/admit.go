package main

import (
	"context"
	"fmt"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// usualLimit is how many words a Page may have that says nothing of it.
const usualLimit = 10

// admit sets the defaults of Pages and says what is wrong with them.
type admit struct{}

// Default implements admission.Defaulter.
func (admit) Default(_ context.Context, page *Page) error {
	if page.Spec.Limit == 0 {
		page.Spec.Limit = usualLimit
	}
	return nil
}

// ValidateCreate implements admission.Validator.
func (admit) ValidateCreate(_ context.Context, page *Page) (admission.Warnings, error) {
	words := len(strings.Fields(page.Spec.Text))
	if words > page.Spec.Limit {
		return nil, fmt.Errorf("spec.text: %d words, at most %d are allowed", words, page.Spec.Limit)
	}
	if words == 0 {
		return admission.Warnings{"spec.text: the page is empty"}, nil
	}
	return nil, nil
}

// ValidateUpdate implements admission.Validator.
func (a admit) ValidateUpdate(ctx context.Context, _, page *Page) (admission.Warnings, error) {
	return a.ValidateCreate(ctx, page)
}

// ValidateDelete implements admission.Validator.
func (admit) ValidateDelete(context.Context, *Page) (admission.Warnings, error) { return nil, nil }
