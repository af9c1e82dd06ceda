// Package discovery finds a mesh with a bootstrap token and the hash of the mesh's authority, as kubeadm does: it
// reads cluster-info from any server that answers, and trusts it only if it is signed with the token and names the
// authority with that hash. All further requests go to a server with a certificate of that authority.
package discovery

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"

	"keelson.dev/cli/internal/plan"
)

const (
	// answerTimeout limits one request: an overloaded apiserver takes some ten seconds for one.
	answerTimeout = 30 * time.Second
	// unsignedFor is how long a token may be unknown: cluster-info is signed within some ten seconds after the
	// token was made.
	unsignedFor = 20 * time.Second
	// unsignedInterval is how often cluster-info is read meanwhile.
	unsignedInterval = time.Second
	// maxAnswer is larger than a ConfigMap can be.
	maxAnswer = 4 << 20
)

// defaultPort is the apiserver's default port.
const defaultPort = "6443"

// ParseAddress parses a typed address of the apiserver and returns it with its port.
func ParseAddress(text string) (string, error) {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		host, port = text, defaultPort
	}
	number, err := strconv.Atoi(port)
	if err != nil || number < 1 || number > 65535 ||
		net.ParseIP(host) == nil && len(validation.IsDNS1123Subdomain(host)) > 0 {
		return "", fmt.Errorf("%q must be the apiserver's address, for example 192.0.2.1:6443", text)
	}
	return net.JoinHostPort(host, port), nil
}

// Mesh holds the verified facts about a mesh.
type Mesh struct {
	// Server is the apiserver's URL, CA the mesh's authority in PEM.
	Server   string
	CA       []byte
	Settings plan.NodeSettings

	client kubernetes.Interface
}

// Find fetches the description of the mesh at an address. Everything that it returns without an error is
// authenticated.
func Find(ctx context.Context, address string, token Token, pins []string) (*Mesh, error) {
	return find(ctx, address, token, pins, false)
}

// FindThere is Find for a machine that is to have its own apiserver: it sends all further requests to the same
// address, so that no other apiserver of the mesh needs to be reachable.
func FindThere(ctx context.Context, address string, token Token, pins []string) (*Mesh, error) {
	return find(ctx, address, token, pins, true)
}

func find(ctx context.Context, address string, token Token, pins []string, there bool) (*Mesh, error) {
	info, err := signedInfo(ctx, address, token)
	if err != nil {
		return nil, err
	}
	cluster, err := clusterOf(info[bootstrapapi.KubeConfigKey])
	if err != nil {
		return nil, err
	}
	if err := CheckPins(cluster.CertificateAuthorityData, pins); err != nil {
		return nil, err
	}
	found := &Mesh{Server: cluster.Server, CA: cluster.CertificateAuthorityData}
	if there {
		found.Server = "https://" + address
	}
	found.client, err = kubernetes.NewForConfig(&rest.Config{Host: found.Server, BearerToken: token.String(),
		UserAgent: "keel", Timeout: answerTimeout, TLSClientConfig: rest.TLSClientConfig{CAData: found.CA}})
	if err != nil {
		return nil, fmt.Errorf("building a client: %w", err)
	}
	settings, err := found.client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, plan.NodeSettingsName,
		metav1.GetOptions{})
	if err != nil {
		return nil, found.refusal(token, err)
	}
	found.Settings, err = plan.ParseNodeSettings(settings.Data[plan.NodeSettingsKey])
	return found, err
}

// Refresh asks the mesh at a URL for its apiserver's present URL and its trusted authorities, but not for its
// settings. The answer is trusted because the server has a certificate of an already trusted authority, perhaps
// through the bridge certificate in which that authority vouches for the one that signs now. It needs no
// credentials.
func Refresh(ctx context.Context, server string, trusted []byte) (*Mesh, error) {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(trusted) {
		return nil, errors.New("there is no authority to believe the mesh by")
	}
	parsed, err := url.Parse(server)
	if err != nil {
		return nil, fmt.Errorf("reading the mesh's URL: %w", err)
	}
	info, err := clusterInfo(ctx, parsed.Host, &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12})
	if err != nil {
		return nil, err
	}
	cluster, err := clusterOf(info[bootstrapapi.KubeConfigKey])
	if err != nil {
		return nil, err
	}
	pins, err := PinsOf(cluster.CertificateAuthorityData)
	if err == nil && len(pins) == 0 {
		err = errors.New("the mesh names no authority: run keel init on its first machine again")
	}
	if err != nil {
		return nil, err
	}
	return &Mesh{Server: cluster.Server, CA: cluster.CertificateAuthorityData}, nil
}

// Living reports whether the mesh has a ready node of that name: another machine, which must not lose its name.
func (m *Mesh) Living(ctx context.Context, name string) (bool, error) {
	node, err := m.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("asking the mesh for the node %s: %w", name, err)
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue, nil
		}
	}
	return false, nil
}

// signedInfo waits until cluster-info is signed with the token, and returns it. It is signed a little after a
// token was made.
func signedInfo(ctx context.Context, address string, token Token) (map[string]string, error) {
	patience, cancel := context.WithTimeout(ctx, unsignedFor)
	defer cancel()
	ticker := time.NewTicker(unsignedInterval)
	defer ticker.Stop()
	for {
		info, err := clusterInfo(ctx, address, anybody())
		if err != nil {
			return nil, err
		}
		err = CheckSignature(info, token)
		if !errors.As(err, &errUnsigned{}) {
			return info, err
		}
		select {
		case <-patience.Done():
			return nil, err
		case <-ticker.C:
		}
	}
}

// anybody returns a configuration that accepts every server: the answer is trusted for its signature.
func anybody() *tls.Config {
	return &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12} //nolint:gosec // as said
}

// clusterInfo requests cluster-info from a server that the TLS configuration accepts, and compares the clocks.
func clusterInfo(ctx context.Context, address string, config *tls.Config) (map[string]string, error) {
	question := "https://" + address + "/api/v1/namespaces/" + metav1.NamespacePublic + "/configmaps/" +
		bootstrapapi.ConfigMapClusterInfo
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, question, nil)
	if err != nil {
		return nil, fmt.Errorf("asking for cluster-info: %w", err)
	}
	request.Header.Set("Accept", "application/json")
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, TLSClientConfig: config}
	client := &http.Client{Transport: transport, Timeout: answerTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("no apiserver answers at %s: %w; is it the machine of keel init, and does no firewall "+
			"stand between?", address, errors.Unwrap(err))
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("reading cluster-info from %s: %w", address, err)
	}
	if date, err := http.ParseTime(answer.Header.Get("Date")); err == nil {
		if err := CheckClock(date, time.Now()); err != nil {
			return nil, err
		}
	}
	switch answer.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound, http.StatusUnauthorized, http.StatusForbidden:
		return nil, fmt.Errorf("the apiserver at %s shows no cluster-info to machines that would join (%s): run keel "+
			"init there again", address, answer.Status)
	default:
		return nil, fmt.Errorf("asking %s for cluster-info: %s", address, answer.Status)
	}
	var info corev1.ConfigMap
	if err := json.Unmarshal(body, &info); err != nil || info.Name != bootstrapapi.ConfigMapClusterInfo {
		return nil, fmt.Errorf("what answers at %s is no apiserver: it has no cluster-info", address)
	}
	return info.Data, nil
}

// clusterOf returns the only cluster of the kubeconfig in cluster-info.
func clusterOf(text string) (*clientcmdapi.Cluster, error) {
	config, err := clientcmd.Load([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig in cluster-info: %w", err)
	}
	if len(config.Clusters) != 1 {
		return nil, fmt.Errorf("the kubeconfig in cluster-info names %d clusters, not one", len(config.Clusters))
	}
	for _, cluster := range config.Clusters {
		return cluster, nil
	}
	return nil, nil
}

// refusal explains why the apiserver of the mesh refuses the token.
func (m *Mesh) refusal(token Token, err error) error {
	var invalid x509.CertificateInvalidError
	var host x509.HostnameError
	var unknown x509.UnknownAuthorityError
	switch {
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("--token: the apiserver does not believe token %s: it has just expired, or is not for "+
			"authentication", token.ID)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("--token: token %s may not make nodes: make one by keel token create", token.ID)
	case apierrors.IsNotFound(err):
		return fmt.Errorf("the mesh at %s does not say how its nodes are to be: run keel init there again", m.Server)
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return fmt.Errorf("by this machine's clock (%s) the certificate of %s is not valid: set the clocks, or run "+
			"keel init there again", time.Now().UTC().Format(time.RFC3339), m.Server)
	case errors.As(err, &host):
		return fmt.Errorf("the certificate of the apiserver is not for %s: run keel init there again", m.Server)
	case errors.As(err, &unknown):
		return fmt.Errorf("the apiserver at %s is not of the mesh whose hash %s names", m.Server, PinFlag)
	}
	return fmt.Errorf("asking the apiserver at %s how nodes are to be: %w", m.Server, err)
}

// ShareAuthority reports whether two bundles have an authority in common.
func ShareAuthority(a, b []byte) bool {
	some, err := PinsOf(a)
	if err != nil {
		return false
	}
	others, err := PinsOf(b)
	return err == nil && slices.ContainsFunc(some, func(pin string) bool { return slices.Contains(others, pin) })
}
