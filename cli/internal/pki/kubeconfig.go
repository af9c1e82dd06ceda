package pki

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"keelson.dev/cli/internal/plan"
)

// EnsureKubeconfig writes the connection file of a certificate's user, credentials included, where it is missing or
// differs.
func EnsureKubeconfig(layout plan.Layout, file, server string) error {
	var content [3][]byte
	for i, part := range []string{"ca.crt", file + ".crt", file + ".key"} {
		var err error
		if content[i], err = os.ReadFile(layout.PKI(part)); err != nil {
			return fmt.Errorf("reading %s for its kubeconfig: %w", part, err)
		}
	}
	const cluster = "keelson"
	config := clientcmdapi.NewConfig()
	config.Clusters[cluster] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: content[0]}
	config.AuthInfos[file] = &clientcmdapi.AuthInfo{ClientCertificateData: content[1], ClientKeyData: content[2]}
	config.Contexts[cluster] = &clientcmdapi.Context{Cluster: cluster, AuthInfo: file}
	config.CurrentContext = cluster
	text, err := clientcmd.Write(*config)
	if err != nil {
		return fmt.Errorf("rendering the kubeconfig of %s: %w", file, err)
	}
	path := layout.Kubeconfig(file)
	have, err := os.ReadFile(path)
	if err == nil && bytes.Equal(have, text) {
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("making the folder of the kubeconfigs: %w", err)
	}
	return replaceFile(path, text)
}
