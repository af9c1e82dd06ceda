// Package clustertrustbundle is the resource ClusterTrustBundle of group certificates.k8s.io: the certificates of
// authorities, for anybody to read and for Pods to have in a volume. Who may write those of a signer is what the
// admission plugin of trustbundles says.
//
//keelson:decision
package clustertrustbundle

import (
	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"keelson.dev/services/apiserver/internal/registry/table"
	"keelson.dev/services/apiserver/internal/resource"
)

type bundle = certificatesv1.ClusterTrustBundle

// Resource is the ClusterTrustBundle.
var Resource = resource.Resource[*bundle]{
	Group:         certificatesv1.GroupName,
	Name:          "clustertrustbundles",
	Singular:      "clustertrustbundle",
	ClusterScoped: true,
	New:           func() *bundle { return &bundle{} },
	NewList:       func() runtime.Object { return &certificatesv1.ClusterTrustBundleList{} },
	Strategy: resource.Strategy[*bundle]{
		Name:                   resource.PathSegmentName,
		Validate:               Validate,
		ValidateUpdate:         ValidateUpdate,
		RequireResourceVersion: true,
	},
	Fields: []resource.Field[*bundle]{
		{Label: "spec.signerName", Value: func(b *bundle) string { return b.Spec.SignerName }, Indexed: true},
	},
	Columns: resource.NewColumns(
		resource.NameColumn[*bundle](),
		resource.Column("SignerName", "string", certificatesv1.ClusterTrustBundleSpec{}.SwaggerDoc()["signerName"],
			signerCell),
	),
}

func signerCell(b *bundle) any {
	if b.Spec.SignerName == "" {
		return table.None
	}
	return b.Spec.SignerName
}
