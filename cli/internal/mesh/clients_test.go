package mesh

import (
	"net/http"
	"path/filepath"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"keelson.dev/cli/internal/state"
)

// With a kubeconfig of a user's, the API and the daemons are asked with its credentials, and not with the operator's,
// which this mesh does not have.
func TestAnotherKubeconfig(t *testing.T) {
	f := newFakeAPI(t)
	f.change(func() { f.living["n"] = true })
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: f.URL, CertificateAuthorityData: f.authority(t)}
	config.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: f.token.String(),
		ClientCertificate: f.layout.PKI("apiserver.crt"), ClientKey: f.layout.PKI("apiserver.key")}
	config.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	config.CurrentContext = "x"
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	m := &Mesh{State: &state.State{}, Kubeconfig: file}
	client, err := m.Client()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().Nodes().Get(t.Context(), "n", metav1.GetOptions{}); err != nil {
		t.Errorf("the API: %v", err)
	}
	trust, err := m.TLSClient()
	if err != nil {
		t.Fatal(err)
	}
	if has := len(trust.Certificates) > 0 || trust.GetClientCertificate != nil; !has {
		t.Error("the daemons are asked without the certificate")
	}
	daemon := &http.Client{Transport: &http.Transport{TLSClientConfig: trust, DisableKeepAlives: true}}
	response, err := daemon.Get(f.URL)
	if err != nil {
		t.Fatalf("the CA is not believed: %v", err)
	}
	_ = response.Body.Close()
	m.Kubeconfig += "x"
	if _, err := m.TLSClient(); err == nil {
		t.Error("a file that is missing is no error")
	}
}
