package rest

import (
	"context"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"

	"keelson.dev/services/apiserver/internal/carriedfields"
)

// What a review carries past the check of managed fields is there again when it is answered.
func TestAReviewKeepsItsManagedFields(t *testing.T) {
	type tokenReview = *authenticationv1.TokenReview
	sent := &authenticationv1.TokenReview{ObjectMeta: metav1.ObjectMeta{
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "somebody"}}}}
	ctx := carriedfields.Offer(t.Context(), nil)
	chain := carriedfields.Over(admission.NewChainHandler()).(admission.MutationInterface)
	if err := chain.Admit(ctx, admission.NewAttributesRecord(sent, nil, authenticationv1.SchemeGroupVersion.WithKind(
		"TokenReview"), "", "", authenticationv1.SchemeGroupVersion.WithResource("tokenreviews"), "", admission.Create,
		nil, false, nil), nil); err != nil || len(sent.ManagedFields) != 0 {
		t.Fatalf("admitting: %v, the managed fields are %v, want them to be carried", err, sent.ManagedFields)
	}
	review := NewReview("tokenreview", func() tokenReview { return &authenticationv1.TokenReview{} },
		func(context.Context, tokenReview) error { return nil })
	answer, err := review.Create(ctx, sent, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := answer.(tokenReview).ManagedFields; len(got) != 1 || got[0].Manager != "somebody" {
		t.Errorf("the managed fields of the answer are %v, want somebody's", got)
	}
}
