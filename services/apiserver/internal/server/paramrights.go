package server

import (
	"context"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/services/apiserver/internal/registry/admissionregistration/paramrights"
)

// paramRights are by which a policy's or binding's writer is asked for. They read the store at each question: a policy
// that was made just before counts.
func (s *Server) paramRights() paramrights.Rights {
	policies := s.client.AdmissionregistrationV1()
	return paramrights.Rights{
		Authorizer: s.authority,
		Mapper:     s.mapper,
		Validating: func(ctx context.Context, name string) (*admissionregistrationv1.ParamKind, error) {
			p, err := policies.ValidatingAdmissionPolicies().Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return nil, err //nolint:wrapcheck // only that it is not known counts
			}
			return p.Spec.ParamKind, nil
		},
		Mutating: func(ctx context.Context, name string) (*admissionregistrationv1.ParamKind, error) {
			p, err := policies.MutatingAdmissionPolicies().Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return nil, err //nolint:wrapcheck // only that it is not known counts
			}
			return p.Spec.ParamKind, nil
		},
	}
}
