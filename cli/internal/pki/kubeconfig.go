package pki

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"keelson.dev/cli/internal/plan"
)

// EnsureKubeconfig writes the kubeconfig of a certificate's user, including the credentials, if it is missing or
// differs.
func EnsureKubeconfig(layout plan.Layout, file, server string) error {
	var content [3][]byte
	for i, part := range []string{"ca.crt", file + ".crt", file + ".key"} {
		var err error
		if content[i], err = os.ReadFile(layout.PKI(part)); err != nil {
			return fmt.Errorf("reading %s for its kubeconfig: %w", part, err)
		}
	}
	user := &clientcmdapi.AuthInfo{ClientCertificateData: content[1], ClientKeyData: content[2]}
	return ensureKubeconfig(layout.Kubeconfig(file), file, server, content[0], user)
}

// EnsureBootstrapKubeconfig writes a kubeconfig with a bootstrap token, if it is missing or differs.
func EnsureBootstrapKubeconfig(path, server string, authority []byte, token string) error {
	return ensureKubeconfig(path, "bootstrap", server, authority, &clientcmdapi.AuthInfo{Token: token})
}

// ensureCluster sets the URL and the authorities of the cluster in an existing kubeconfig, and changes nothing
// else.
func ensureCluster(path, server string, authorities []byte) error {
	config, err := clientcmd.LoadFromFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the agent's kubeconfig: %w", err)
	}
	for _, cluster := range config.Clusters {
		cluster.Server = server
		cluster.CertificateAuthority, cluster.CertificateAuthorityData = "", authorities
	}
	text, err := clientcmd.Write(*config)
	if err != nil {
		return fmt.Errorf("rendering the agent's kubeconfig: %w", err)
	}
	return ensureFile(path, text)
}

func ensureKubeconfig(path, name, server string, authority []byte, user *clientcmdapi.AuthInfo) error {
	const cluster = "keelson"
	config := clientcmdapi.NewConfig()
	config.Clusters[cluster] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: authority}
	config.AuthInfos[name] = user
	config.Contexts[cluster] = &clientcmdapi.Context{Cluster: cluster, AuthInfo: name}
	config.CurrentContext = cluster
	text, err := clientcmd.Write(*config)
	if err != nil {
		return fmt.Errorf("rendering the kubeconfig of %s: %w", name, err)
	}
	return ensureFile(path, text)
}
