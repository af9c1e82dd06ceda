package nodecertificates

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"keelson.dev/kit/failpoint"
	"keelson.dev/services/nodeagent/internal/wholefile"
)

// kubeconfigFile is the current context of a kubeconfig.
type kubeconfigFile struct {
	cluster *clientcmdapi.Cluster
	user    *clientcmdapi.AuthInfo
}

// readKubeconfig returns nil if the file does not exist. Files that it names may be missing.
func readKubeconfig(file string) (*kubeconfigFile, error) {
	config, err := clientcmd.LoadFromFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = clientcmd.ResolveLocalPaths(config)
	}
	if err != nil {
		return nil, err
	}
	current := config.Contexts[config.CurrentContext]
	if current == nil {
		return nil, fmt.Errorf("%s: current-context: there is no context %q", file, config.CurrentContext)
	}
	out := &kubeconfigFile{cluster: config.Clusters[current.Cluster], user: config.AuthInfos[current.AuthInfo]}
	if out.cluster == nil {
		return nil, fmt.Errorf("%s: there is no cluster %q", file, current.Cluster)
	}
	if out.user == nil {
		return nil, fmt.Errorf("%s: there is no user %q", file, current.AuthInfo)
	}
	return out, nil
}

// namesPair reports whether the user has a client certificate.
func (k *kubeconfigFile) namesPair() bool {
	return k.user.ClientCertificate != "" || len(k.user.ClientCertificateData) > 0
}

// pair returns the user's client certificate and its key; empty if their files cannot be read.
func (k *kubeconfigFile) pair() (certificate, key []byte) {
	read := func(data []byte, file string) []byte {
		if len(data) == 0 && file != "" {
			data, _ = os.ReadFile(file) // an error counts as no certificate
		}
		return data
	}
	return read(k.user.ClientCertificateData, k.user.ClientCertificate), read(k.user.ClientKeyData, k.user.ClientKey)
}

// as returns a kubeconfig for the same apiserver and the user with the pair.
func (k *kubeconfigFile) as(pairFile string) *clientcmdapi.Config {
	const name = "default"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = k.cluster
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{ClientCertificate: pairFile, ClientKey: pairFile}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	return config
}

// writeKubeconfig creates or replaces the file.
func writeKubeconfig(file string, config *clientcmdapi.Config) error {
	data, err := clientcmd.Write(*config)
	if err != nil {
		return fmt.Errorf("encoding the kubeconfig: %w", err)
	}
	dir := filepath.Dir(file)
	err = os.MkdirAll(dir, 0o750)
	if err == nil {
		err = wholefile.Clear(dir, filepath.Base(file))
	}
	if err == nil {
		err = failpoint.Around("nodeagent/kubeconfig.write",
			func() error { return wholefile.Write(file, data, 0o600) })
	}
	if err != nil {
		return fmt.Errorf("writing the kubeconfig: %w", err)
	}
	return nil
}
