// Package certificatesigningrequest is the resource CertificateSigningRequest of group certificates.k8s.io: a client
// requests a certificate of a signer, an approver approves it, and the signer issues it. The request and the requester
// never change. The admission plugins of certificaterequests decide who may approve and sign.
//
//keelson:decision
package certificatesigningrequest

import (
	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"

	"keelson.dev/kit/seconds"
	"keelson.dev/services/apiserver/internal/registry/table"
	"keelson.dev/services/apiserver/internal/resource"
)

type csr = certificatesv1.CertificateSigningRequest

// Resource is the CertificateSigningRequest with its /status and /approval.
var Resource = resource.Resource[*csr]{
	Group:         certificatesv1.GroupName,
	Name:          "certificatesigningrequests",
	Singular:      "certificatesigningrequest",
	ShortNames:    []string{"csr"},
	ClusterScoped: true,
	New:           func() *csr { return &csr{} },
	NewList:       func() runtime.Object { return &certificatesv1.CertificateSigningRequestList{} },
	NoGeneration:  true,
	Spec:          resource.PartOf(func(r *csr) *certificatesv1.CertificateSigningRequestSpec { return &r.Spec }),
	Status:        resource.PartOf(func(r *csr) *certificatesv1.CertificateSigningRequestStatus { return &r.Status }),
	Strategy: resource.Strategy[*csr]{
		Name:             resource.PathSegmentName,
		SetRequester:     setRequester,
		Validate:         Validate,
		PrepareForUpdate: func(r, old *csr) { r.Spec = old.Spec },
		ValidateUpdate:   ValidateUpdate,
		ResetFields:      []string{"spec", "status"},
	},
	StatusStrategy: resource.Strategy[*csr]{
		PrepareAt:      prepareStatus,
		ValidateUpdate: ValidateUpdate,
	},
	Writes: map[string]resource.Strategy[*csr]{
		"certificatesigningrequests/approval": {
			PrepareAt:      prepareApproval,
			ValidateUpdate: ValidateApproval,
			ResetFields:    []string{"spec", "status.certificate"},
		},
	},
	Fields: []resource.Field[*csr]{{Label: "spec.signerName", Value: func(r *csr) string { return r.Spec.SignerName }}},
	Columns: resource.NewColumns(
		resource.NameColumn[*csr](),
		resource.AgeColumn[*csr](),
		resource.Column("SignerName", "string",
			certificatesv1.CertificateSigningRequestSpec{}.SwaggerDoc()["signerName"],
			func(r *csr) any { return r.Spec.SignerName }),
		resource.Column("Requestor", "string", certificatesv1.CertificateSigningRequestSpec{}.SwaggerDoc()["username"],
			func(r *csr) any { return r.Spec.Username }),
		resource.Column("RequestedDuration", "string",
			certificatesv1.CertificateSigningRequestSpec{}.SwaggerDoc()["expirationSeconds"], durationCell),
		resource.Column("Condition", "string",
			certificatesv1.CertificateSigningRequestStatus{}.SwaggerDoc()["conditions"],
			func(r *csr) any { return state(r) }),
	),
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
