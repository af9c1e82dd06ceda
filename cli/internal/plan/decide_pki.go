package plan

import (
	"net/netip"
	"slices"
	"strings"
	"time"
)

// Lifetimes of the certificates. `keel up` renews those that the CA signs once a third of their lifetime is left.
const (
	caLife   = 10 * 365 * 24 * time.Hour
	leafLife = 2 * 365 * 24 * time.Hour
)

// Certificate is one certificate that the cluster CA signs.
type Certificate struct {
	// File is its name below pki/, without the extension.
	File string
	// User and Groups identify the client to the apiserver; a serving certificate has a name only.
	User   string
	Groups []string
	// Hosts and Addresses are those for which a serving certificate is valid; a client certificate has none.
	Hosts     []string
	Addresses []netip.Addr
	// Store is set if the store's own authority signs it, for both sides of a connection between machines.
	Store bool
}

// Serves reports whether it is a serving certificate rather than a client's.
func (c Certificate) Serves() bool { return len(c.Hosts)+len(c.Addresses) > 0 }

// HasKubeconfig reports whether its user has a kubeconfig: all clients except the apiserver, which only dials
// nodes.
func (c Certificate) HasKubeconfig() bool { return !c.Serves() && c.File != APIServerToNodeagent }

// Names of certificates that more than one place needs. NextAuthority is the authority that a rotation introduces;
// AuthorityBridge is the certificate in which the previous authority vouches for the one that signs.
const (
	NextAuthority          = "ca-next"
	AuthorityBridge        = "ca-bridge"
	AdminCertificate       = "admin"
	StatusCertificate      = "status"
	APIServerToNodeagent   = "apiserver-nodeagent-client"
	apiserverCertificate   = "apiserver"
	nodeServingCertificate = "-serving"
)

// PKIInput holds what the set of certificates depends on.
type PKIInput struct {
	// Addresses are the machine's own.
	Addresses []netip.Addr
	HostName  string
	Service   netip.Prefix
	// Domain is the cluster domain.
	Domain string
	Nodes  []string
	// Between is the network between the nodes; the zero Prefix without one.
	Between netip.Prefix
	// Store is set if machines may share the store.
	Store bool
	// Endpoint is the HOST:PORT at which other machines reach the control plane; empty if that is this machine.
	Endpoint string
}

// DecidePKI lists the certificates of a mesh; docs/explanation/architecture.md names their users.
func DecidePKI(in PKIInput) []Certificate {
	loopback := []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}
	machine := append(append([]netip.Addr(nil), loopback...), in.Addresses...)
	// Only the first node is on the machine itself.
	status, nodes := slices.Clone(loopback), map[string][]netip.Addr{}
	for i, node := range in.Nodes {
		if nodes[node] = machine; in.Between.IsValid() {
			address := NodeAddress(in.Between, i)
			nodes[node], status = append(slices.Clone(machine), address), append(status, address)
		}
	}
	if in.Between.IsValid() {
		machine = append(machine, FirstAddress(in.Between))
	}
	certificates := []Certificate{
		in.apiserver(machine),
		{File: StatusCertificate, User: "keelson-status", Hosts: []string{"localhost"}, Addresses: status},
		{File: AdminCertificate, User: "kubernetes-admin", Groups: []string{"system:masters"}},
		{File: APIServerToNodeagent, User: "system:keelson:apiserver"},
		{File: Scheduler, User: "system:kube-scheduler"},
		{File: WorkloadControllers, User: "system:keelson:workload-controllers"},
		{File: PodGC, User: "system:keelson:podgc"},
	}
	if in.Store {
		certificates = append(certificates, storeCertificate(in.HostName, machine))
	}
	for _, node := range in.Nodes {
		certificates = append(certificates,
			Certificate{File: node, User: "system:node:" + node, Groups: []string{"system:nodes"}},
			Certificate{File: node + nodeServingCertificate, User: "system:node:" + node,
				Hosts: []string{node, in.HostName, "localhost"}, Addresses: nodes[node]})
	}
	return certificates
}

// apiserver returns the serving certificate of the apiserver on a machine with these addresses.
func (in PKIInput) apiserver(machine []netip.Addr) Certificate {
	c := Certificate{File: apiserverCertificate, User: "keelson-apiserver",
		Hosts: []string{"kubernetes", "kubernetes.default", "kubernetes.default.svc",
			"kubernetes.default.svc." + in.Domain, "localhost", in.HostName},
		Addresses: append(slices.Clone(machine), FirstAddress(in.Service))}
	if at, err := netip.ParseAddrPort(in.Endpoint); err == nil {
		c.Addresses = append(c.Addresses, at.Addr())
	} else if name, _, ok := strings.Cut(in.Endpoint, ":"); ok {
		c.Hosts = append(c.Hosts, name)
	}
	return c
}

// Life returns how long a new certificate is valid.
func Life(ca bool) time.Duration {
	if ca {
		return caLife
	}
	return leafLife
}

// IsCertificate reports whether a certificate or key file has that name in every mesh, so that no node can have
// it.
func IsCertificate(name string) bool {
	if slices.Contains([]string{"ca", NextAuthority, AuthorityBridge, "service-account", StoreAuthority}, name) {
		return true
	}
	return slices.ContainsFunc(DecidePKI(PKIInput{Store: true}), func(c Certificate) bool { return c.File == name })
}

// DueForRenewal reports whether a certificate must be renewed: it is not valid yet, or a third of its life or less
// is left.
func DueForRenewal(notBefore, notAfter, now time.Time) bool {
	left := notAfter.Sub(now)
	return now.Before(notBefore) || left <= notAfter.Sub(notBefore)/3
}
