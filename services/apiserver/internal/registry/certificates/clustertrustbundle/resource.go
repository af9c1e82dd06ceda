// Package clustertrustbundle is the resource ClusterTrustBundle of group certificates.k8s.io: the certificates of
// authorities, for anybody to read and for Pods to have in a volume. Who may write those of a signer is what the
// admission plugin of trustbundles says.
package clustertrustbundle

import (
	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"keelson.dev/services/apiserver/internal/registry/rest"
	"keelson.dev/services/apiserver/internal/registry/table"
)

type bundle = certificatesv1.ClusterTrustBundle

// Resource is the ClusterTrustBundle.
var Resource = rest.Resource[*bundle]{
	Group:         certificatesv1.GroupName,
	Name:          "clustertrustbundles",
	Singular:      "clustertrustbundle",
	ClusterScoped: true,
	New:           func() *bundle { return &bundle{} },
	NewList:       func() runtime.Object { return &certificatesv1.ClusterTrustBundleList{} },
	Strategy: rest.Strategy[*bundle]{
		Name: rest.PathSegmentName, Validate: Validate, ValidateUpdate: ValidateUpdate, RequireResourceVersion: true,
	},
	Fields: []rest.Field[*bundle]{
		{Label: "spec.signerName", Value: func(b *bundle) string { return b.Spec.SignerName }, Indexed: true},
	},
	Columns: rest.NewColumns(
		rest.NameColumn[*bundle](),
		rest.Column("SignerName", "string", certificatesv1.ClusterTrustBundleSpec{}.SwaggerDoc()["signerName"],
			signerCell),
	),
}

func signerCell(b *bundle) any {
	if b.Spec.SignerName == "" {
		return table.None
	}
	return b.Spec.SignerName
}
