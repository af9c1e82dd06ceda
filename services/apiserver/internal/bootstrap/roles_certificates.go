package bootstrap

import (
	certificatesv1 "k8s.io/api/certificates/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
)

// certificateRoles are the roles to request, approve and trust certificates. Except for the last, which Pods have, none
// has subjects from the start: an operator binds them, by the names that those who set up clusters know.
var certificateRoles = []role{
	{
		// Who has a bootstrap token asks for the certificate of a node.
		name: "system:node-bootstrapper",
		rules: []rbacv1.PolicyRule{rule(verbs("create", "get", "list", "watch"), certificatesv1.GroupName,
			requestsName)},
	},
	// The requests of its subjects for nodes' client certificates are approved automatically.
	approvedAtOnce("nodeclient"),
	approvedAtOnce("selfnodeclient"),
	approver("kube-apiserver-client-approver", certificatesv1.KubeAPIServerClientSignerName),
	approver("kube-apiserver-client-kubelet-approver", certificatesv1.KubeAPIServerClientKubeletSignerName),
	approver("kubelet-serving-approver", certificatesv1.KubeletServingSignerName),
	{
		name:   "system:cluster-trust-bundle-discovery",
		rules:  []rbacv1.PolicyRule{rule(read, certificatesv1.GroupName, bundlesName)},
		groups: []string{serviceaccount.AllServiceAccountsGroup},
	},
}

const (
	requestsName       = "certificatesigningrequests"
	bundlesName        = "clustertrustbundles"
	certificatesPrefix = "system:certificates.k8s.io:"
)

// approvedAtOnce is the role whose holders' requests are approved as requests of this form.
func approvedAtOnce(form string) role {
	return role{
		name:  certificatesPrefix + requestsName + ":" + form,
		rules: []rbacv1.PolicyRule{rule(verbs("create"), certificatesv1.GroupName, requestsName+"/"+form)},
	}
}

// approver is the role whose holders approve requests to the signer.
func approver(name, signer string) role {
	right := rule(verbs("approve"), certificatesv1.GroupName, "signers")
	right.ResourceNames = []string{signer}
	return role{name: certificatesPrefix + name, rules: []rbacv1.PolicyRule{right}}
}
