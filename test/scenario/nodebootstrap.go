package scenario

import "k8s.io/client-go/tools/clientcmd"

// joinToken is the token of machines that are to become nodes.
const joinToken = `apiVersion: v1
kind: Secret
metadata: {name: bootstrap-token-joined, namespace: kube-system}
type: bootstrap.kubernetes.io/token
stringData: {token-id: joined, token-secret: 0123456789abcdef, usage-bootstrap-authentication: "true"}
`

// LetNodesJoin makes a token whose holders get a node's first client certificate approved automatically, as nodes get
// the later ones.
func LetNodesJoin(w *World) {
	w.Helper()
	const approved = "--clusterrole=system:certificates.k8s.io:certificatesigningrequests:"
	w.KubectlWith(joinToken, "create", "-n", "kube-system", "-f", "-")
	w.Kubectl("create", "clusterrolebinding", "asks", "--clusterrole=system:node-bootstrapper",
		"--group=system:bootstrappers")
	w.Kubectl("create", "clusterrolebinding", "joins", approved+"nodeclient", "--group=system:bootstrappers")
	w.Kubectl("create", "clusterrolebinding", "renews", approved+"selfnodeclient", "--group=system:nodes")
}

// WriteBootstrap makes a kubeconfig with the token of LetNodesJoin.
func WriteBootstrap(w *World, file string) {
	w.Helper()
	config, err := clientcmd.LoadFromFile(w.Mesh.Kubeconfig())
	if err != nil {
		w.Fatal(err)
	}
	for _, user := range config.AuthInfos {
		user.Token, user.ClientCertificate, user.ClientKey = "joined.0123456789abcdef", "", ""
		user.ClientCertificateData, user.ClientKeyData = nil, nil
	}
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		w.Fatal(err)
	}
}
