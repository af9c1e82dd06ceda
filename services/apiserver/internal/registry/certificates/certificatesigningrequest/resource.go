// Package certificatesigningrequest is the resource CertificateSigningRequest of group certificates.k8s.io: somebody
// asks a signer for a certificate, somebody else approves it, and the signer issues it. What is asked for, and who
// asks, never changes. Who may approve and sign is what the admission plugins of certificaterequests say.
package certificatesigningrequest

import (
	"context"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	genericrest "k8s.io/apiserver/pkg/registry/rest"

	"keelson.dev/kit/seconds"
	"keelson.dev/services/apiserver/internal/registry/rest"
	"keelson.dev/services/apiserver/internal/registry/table"
)

type csr = certificatesv1.CertificateSigningRequest

// Resource is the CertificateSigningRequest with its /status and /approval.
var Resource = rest.Resource[*csr]{
	Group:         certificatesv1.GroupName,
	Name:          "certificatesigningrequests",
	Singular:      "certificatesigningrequest",
	ShortNames:    []string{"csr"},
	ClusterScoped: true,
	New:           func() *csr { return &csr{} },
	NewList:       func() runtime.Object { return &certificatesv1.CertificateSigningRequestList{} },
	NoGeneration:  true,
	Spec:          rest.PartOf(func(r *csr) *certificatesv1.CertificateSigningRequestSpec { return &r.Spec }),
	Status:        rest.PartOf(func(r *csr) *certificatesv1.CertificateSigningRequestStatus { return &r.Status }),
	Strategy: rest.Strategy[*csr]{
		Name:             rest.PathSegmentName,
		Validate:         Validate,
		PrepareForUpdate: func(r, old *csr) { r.Spec = old.Spec },
		ValidateUpdate:   ValidateUpdate,
		ResetFields:      []string{"spec", "status"},
	},
	StatusStrategy: rest.Strategy[*csr]{
		PrepareForUpdate: func(r, old *csr) { prepareStatus(r, old, metav1.Now()) },
		ValidateUpdate:   ValidateUpdate,
	},
	Subresources: map[string]func(*rest.Storage) genericrest.Storage{
		"certificatesigningrequests/approval": rest.Writes(rest.Strategy[*csr]{
			PrepareForUpdate: func(r, old *csr) { prepareApproval(r, old, metav1.Now()) },
			ValidateUpdate:   ValidateApproval,
			ResetFields:      []string{"spec", "status.certificate"},
		}),
	},
	Fields:    []rest.Field[*csr]{{Label: "spec.signerName", Value: func(r *csr) string { return r.Spec.SignerName }}},
	Customize: func(s *genericregistry.Store) { s.BeginCreate = ask },
	Columns: rest.NewColumns(
		rest.NameColumn[*csr](),
		rest.AgeColumn[*csr](),
		rest.Column("SignerName", "string", certificatesv1.CertificateSigningRequestSpec{}.SwaggerDoc()["signerName"],
			func(r *csr) any { return r.Spec.SignerName }),
		rest.Column("Requestor", "string", certificatesv1.CertificateSigningRequestSpec{}.SwaggerDoc()["username"],
			func(r *csr) any { return r.Spec.Username }),
		rest.Column("RequestedDuration", "string",
			certificatesv1.CertificateSigningRequestSpec{}.SwaggerDoc()["expirationSeconds"], durationCell),
		rest.Column("Condition", "string", certificatesv1.CertificateSigningRequestStatus{}.SwaggerDoc()["conditions"],
			func(r *csr) any { return state(r) }),
	),
}

// ask writes into a new request who makes it, whatever the client says about that.
func ask(ctx context.Context, object runtime.Object, _ *metav1.CreateOptions) (genericregistry.FinishFunc, error) {
	who, known := request.UserFrom(ctx)
	if !known {
		who = &user.DefaultInfo{}
	}
	setRequester(object.(*csr), who)
	return func(context.Context, bool) {}, nil
}

func durationCell(r *csr) any {
	if r.Spec.ExpirationSeconds == nil {
		return table.None
	}
	return duration.HumanDuration(seconds.Of(*r.Spec.ExpirationSeconds))
}

// state is what kubectl shows of a request; several of the words may hold.
func state(r *csr) string {
	text := "Pending"
	switch {
	case len(find(r, certificatesv1.CertificateDenied)) > 0:
		text = "Denied"
	case len(find(r, certificatesv1.CertificateApproved)) > 0:
		text = "Approved"
	}
	if len(find(r, certificatesv1.CertificateFailed)) > 0 {
		text += ",Failed"
	}
	if len(r.Status.Certificate) > 0 {
		text += ",Issued"
	}
	return text
}
