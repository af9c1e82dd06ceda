package servertest

import (
	"context"
	"fmt"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// AwaitRight returns when the server knows that a user may do something: it learns of a role and of its binding by
// watches, one after the other, and what it knows of one user says nothing of the next.
func AwaitRight(t testing.TB, client kubernetes.Interface, right authorizationv1.SubjectAccessReviewSpec) {
	t.Helper()
	Eventually(t, fmt.Sprintf("the server knows what %s of %q may", right.User, right.Groups),
		func(ctx context.Context) string {
			review, err := client.AuthorizationV1().SubjectAccessReviews().Create(ctx,
				&authorizationv1.SubjectAccessReview{Spec: right}, metav1.CreateOptions{})
			if err != nil || !review.Status.Allowed {
				return fmt.Sprintf("%v, %v", review, err)
			}
			return ""
		})
}
