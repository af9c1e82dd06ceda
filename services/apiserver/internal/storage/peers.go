package storage

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"os"

	"github.com/google/uuid"
	"github.com/spf13/pflag"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/client/pkg/v3/types"
	"go.etcd.io/etcd/server/v3/config"
)

const (
	// Members on several machines hear of each other over a network: as etcd does by default, they take a leader for
	// gone after a second.
	peerTickMilliseconds = 100
	peerElectionTicks    = 10
	// peerCatchUpEntries of the log stay in memory for members that lag behind; one that lags further gets all of the
	// store.
	peerCatchUpEntries = 1_000
)

// Peers says how the embedded store's member and those of other machines reach each other. The zero Peers keeps it
// alone.
type Peers struct {
	// Address is IP:PORT, at which the member listens and which the others know it by.
	Address string
	// CertFile, KeyFile and CAFile are the TLS files: who shows a certificate of the bundle is a member, or may make
	// one.
	CertFile, KeyFile, CAFile string
	// Join are peer URLs of members whose cluster an empty store becomes part of; without any it begins one.
	Join []string
	// Doing is told what the start waits for; it may be nil.
	Doing func(string)
}

// AddFlags binds the flags.
func (p *Peers) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&p.Address, "etcd-peer-address", p.Address, "IP:PORT at which the embedded store is reached by those "+
		"of other machines, over TLS; without it the store stays on this machine alone")
	fs.StringVar(&p.CertFile, "etcd-peer-cert-file", p.CertFile,
		"PEM certificate for --etcd-peer-address, shown to those who come and to those it goes to")
	fs.StringVar(&p.KeyFile, "etcd-peer-key-file", p.KeyFile, "PEM key of --etcd-peer-cert-file")
	fs.StringVar(&p.CAFile, "etcd-peer-ca-file", p.CAFile, "PEM bundle of the store's own authority: whoever shows a "+
		"certificate of it at --etcd-peer-address is part of the store")
	fs.StringSliceVar(&p.Join, "etcd-join", p.Join, "URLs of --etcd-peer-address of other machines, of whose store an "+
		"empty one becomes a copy that counts; without any it begins a store of its own")
}

// Validate says what is wrong with the values.
func (p Peers) Validate(external bool) []error {
	var errs []error
	if !p.on() {
		if p.CertFile+p.KeyFile+p.CAFile != "" || len(p.Join) > 0 {
			errs = append(errs, errors.New("--etcd-peer-address: must be set with --etcd-peer-cert-file, "+
				"--etcd-peer-key-file, --etcd-peer-ca-file and --etcd-join"))
		}
		return errs
	}
	if external {
		errs = append(errs, errors.New("--etcd-peer-address: is of the embedded store, and --etcd-servers is another"))
	}
	if address, err := netip.ParseAddrPort(p.Address); err != nil || address.Port() == 0 ||
		address.Addr().IsUnspecified() {
		errs = append(errs, fmt.Errorf("--etcd-peer-address: %q is not an IP address of this machine and a port, as "+
			"192.0.2.1:2380", p.Address))
	}
	for _, file := range []struct{ flag, path string }{
		{"--etcd-peer-cert-file", p.CertFile}, {"--etcd-peer-key-file", p.KeyFile}, {"--etcd-peer-ca-file", p.CAFile},
	} {
		if file.path == "" {
			errs = append(errs, fmt.Errorf("%s: must be set with --etcd-peer-address", file.flag))
		} else if _, err := os.Stat(file.path); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", file.flag, err))
		}
	}
	return append(errs, p.checkJoin()...)
}

func (p Peers) checkJoin() (errs []error) {
	for _, text := range p.Join {
		at, err := url.Parse(text)
		if err == nil {
			_, err = netip.ParseAddrPort(at.Host)
		}
		if err != nil || at.Scheme != "https" || at.Path != "" {
			errs = append(errs, fmt.Errorf("--etcd-join: %q must be a URL as https://192.0.2.1:2380", text))
		}
	}
	return errs
}

// on reports whether there may be members on other machines.
func (p Peers) on() bool { return p.Address != "" }

// url is the URL by which the others know the member.
func (p Peers) url() url.URL { return url.URL{Scheme: "https", Host: p.Address} }

// doing reports what the start waits for.
func (p Peers) doing(what string) {
	if p.Doing != nil {
		p.Doing(what)
	}
}

// tls admits clients with a certificate of the store's own authority, from whatever address.
func (p Peers) tls() transport.TLSInfo {
	return transport.TLSInfo{CertFile: p.CertFile, KeyFile: p.KeyFile, TrustedCAFile: p.CAFile,
		ClientCertAuth: true, SkipClientSANVerify: true}
}

// apply makes the configuration of a lone member that of one with peers. A new store has ids of its own, so that it is
// never taken for another.
func (p Peers) apply(c *config.ServerConfig) {
	own := types.URLs{p.url()}
	c.Name, c.PeerURLs, c.PeerTLSInfo = p.Address, own, p.tls()
	c.InitialPeerURLsMap = types.URLsMap{c.Name: own}
	c.InitialClusterToken = uuid.NewString()
	c.TickMs, c.ElectionTicks = peerTickMilliseconds, peerElectionTicks
	c.SnapshotCatchUpEntries = peerCatchUpEntries
}
