package mesh

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"keelson.dev/cli/internal/discovery"
	"keelson.dev/cli/internal/pki"
	"keelson.dev/cli/internal/plan"
)

const (
	// rootCA is the ConfigMap with the authorities by which Pods verify the apiserver, rootCAKey their key in it.
	rootCA, rootCAKey = "kube-root-ca.crt", "ca.crt"
	// reachedWithin is how long an apiserver that is starting may take to answer.
	reachedWithin = 30 * time.Second
	// publishedWithin is how long the publisher may take: its Lease may still belong to a process that has just
	// ended.
	publishedWithin = 2 * time.Minute
	// servingTimeout limits how long reading a node's serving certificate may take.
	servingTimeout = 10 * time.Second
)

// apiOthers implements others for a real mesh. It opens new connections each time, because the trusted authorities
// change.
type apiOthers struct{ *Mesh }

func (o *apiOthers) reach(ctx context.Context) error {
	client, err := o.Client()
	if err != nil {
		return err
	}
	within, cancel := context.WithTimeout(ctx, reachedWithin)
	defer cancel()
	if err := until(within, func() error {
		return client.Discovery().RESTClient().Get().AbsPath("/version").Do(within).Error()
	}); err != nil {
		return fmt.Errorf("asking the apiserver: %w", err)
	}
	return nil
}

func (o *apiOthers) controlPlane(ctx context.Context) ([]string, error) {
	if !o.State.SharesStore() {
		return nil, nil // its store is its own
	}
	members, err := o.storeMembers(ctx)
	if err != nil {
		return nil, err
	}
	machines := make([]string, len(members))
	for i, m := range members {
		machines[i] = m.Address
	}
	return machines, nil
}

// storeMember is a machine that has the store, as the apiserver's program says it.
type storeMember struct {
	Address string `json:"address"`
	Counts  bool   `json:"counts"`
	Self    bool   `json:"self"`
}

// storeMembers returns the machines that have the store.
func (m *Mesh) storeMembers(ctx context.Context) (members []storeMember, err error) {
	said, err := m.askStore(ctx, "members", "--output=json")
	if err != nil {
		return nil, fmt.Errorf("asking which machines have the store: %w", err)
	}
	if err := json.Unmarshal(said, &members); err != nil {
		return nil, fmt.Errorf("reading which machines have the store: %w", err)
	}
	return members, nil
}

func (o *apiOthers) publish(ctx context.Context, pins []string) error {
	if o.State.Units {
		if _, err := o.Invite(ctx); err != nil {
			return err
		}
	}
	client, err := o.Client()
	if err != nil {
		return err
	}
	within, cancel := context.WithTimeout(ctx, publishedWithin)
	defer cancel()
	return until(within, func() error {
		published, err := publishedRoot(within, client)
		if err != nil || slices.Equal(published, pins) {
			return err
		}
		return fmt.Errorf("the ConfigMap %s of %s does not name %v but %v: who holds the Lease of rootca writes it, "+
			"and reads the authorities when it starts; scale workload-controllers of the chart to 0 replicas, so that "+
			"keel's own write it, run this again, and scale it back", rootCA, metav1.NamespaceSystem, pins, published)
	})
}

// publishedRoot returns the pins of the authorities by which Pods verify the apiserver.
func publishedRoot(ctx context.Context, client kubernetes.Interface) ([]string, error) {
	published, err := client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, rootCA, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading the ConfigMap %s: %w", rootCA, err)
	}
	return discovery.PinsOf([]byte(published.Data[rootCAKey]))
}

func (o *apiOthers) followers(ctx context.Context) ([]plan.Follower, error) {
	client, err := o.Client()
	if err != nil {
		return nil, err
	}
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing the nodes: %w", err)
	}
	bundle, err := pki.Trusted(o.Layout)
	if err != nil {
		return nil, err
	}
	var followers []plan.Follower
	for _, node := range nodes.Items {
		if slices.Contains(o.State.NodeNames(), node.Name) {
			continue // keel on this machine renews its certificates
		}
		follower := plan.Follower{Node: node.Name, Authority: node.Annotations[plan.AuthorityAnnotation]}
		if shown, err := servingCertificate(ctx, &node); err != nil {
			follower.Fault = err.Error()
		} else {
			follower.Serving = signerOf(shown, bundle)
		}
		followers = append(followers, follower)
	}
	return followers, nil
}

// signerOf returns the pin of the authority that has signed a certificate; empty if none of them has.
func signerOf(certificate *x509.Certificate, bundle []*x509.Certificate) string {
	for _, authority := range bundle {
		if certificate.CheckSignatureFrom(authority) == nil {
			return discovery.PinOf(authority)
		}
	}
	return ""
}

// servingCertificate returns the certificate that the API of a node shows, without verifying it.
func servingCertificate(ctx context.Context, node *corev1.Node) (*x509.Certificate, error) {
	address := ""
	for _, a := range node.Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			address = net.JoinHostPort(a.Address, strconv.Itoa(int(node.Status.DaemonEndpoints.KubeletEndpoint.Port)))
			break
		}
	}
	if address == "" {
		return nil, fmt.Errorf("it has no address")
	}
	ctx, cancel := context.WithTimeout(ctx, servingTimeout)
	defer cancel()
	dialer := &tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, //nolint:gosec // it is only looked at
		MinVersion: tls.VersionTLS12}}
	connection, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	defer connection.Close()
	return connection.(*tls.Conn).ConnectionState().PeerCertificates[0], nil
}
