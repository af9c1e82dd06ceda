package plan

import (
	"net/netip"
	"slices"
	"strings"
)

// StorePort is the key of the port at which the stores of several machines reach each other.
const StorePort = "store"

// storePort is the conventional port.
const storePort = 2380

// The store's own authority signs the certificates with which machines share the store: certificates of the mesh's
// authority give no access to it.
const (
	StoreAuthority     = "store-ca"
	StoreAuthorityPath = "pki/" + StoreAuthority + ".crt"
	storePeer          = "store-peer"
)

// encryptionFile is the encryption configuration on a machine that has joined the control plane.
const encryptionFile = "encryption.yaml"

// encryptionFlag names that file to the apiserver.
const encryptionFlag = "--encryption-provider-config"

// Encryption is the path of the store's encryption configuration on a machine that was given one.
func (l Layout) Encryption() string { return l.PKI(encryptionFile) }

// storeCertificate is the certificate that a machine's store shows to the stores of other machines.
func storeCertificate(host string, machine []netip.Addr) Certificate {
	return Certificate{File: storePeer, User: "keelson-store", Hosts: []string{"localhost", host},
		Addresses: slices.Clone(machine), Store: true}
}

// sharesStore reports whether other machines may share the embedded store.
func (in ProcessInput) sharesStore() bool { return in.Etcd == nil && in.Ports[StorePort] != 0 }

func (in ProcessInput) storeAddress() netip.AddrPort {
	return netip.AddrPortFrom(in.Advertise, uint16(in.Ports[StorePort]))
}

// StoreURL returns the URL at which other machines reach this machine's store; empty if it is not shared.
func (in ProcessInput) StoreURL() string {
	if !in.sharesStore() {
		return ""
	}
	return "https://" + in.storeAddress().String()
}

// storeFlags returns the apiserver's flags for its etcd cluster, or for what it shares with the apiservers of other
// machines.
func (in ProcessInput) storeFlags() (args []string) {
	if in.Etcd != nil {
		args = append(args, in.Etcd.Flags()...)
	}
	if in.sharesStore() {
		args = append(args, "--etcd-peer-address="+in.storeAddress().String(),
			"--etcd-peer-cert-file="+in.Layout.PKI(storePeer+".crt"),
			"--etcd-peer-key-file="+in.Layout.PKI(storePeer+".key"),
			"--etcd-peer-ca-file="+in.Layout.PKI(StoreAuthority+".crt"))
		if len(in.StorePeers) > 0 {
			args = append(args, "--etcd-join="+strings.Join(in.StorePeers, ","))
		}
	}
	if in.Encrypted {
		args = append(args, encryptionFlag+"="+in.Layout.Encryption())
	}
	return args
}

// SharedFiles lists the files that all machines of a control plane have in their folder pki: the authorities of
// the mesh and of the store, and the key of ServiceAccount tokens. They are written in this order.
func SharedFiles() []string {
	return []string{"service-account.key", StoreAuthority + ".crt", StoreAuthority + ".key", "ca.crt", "ca.key"}
}

// Foreign holds the apiserver's flags that keel has not set.
type Foreign struct {
	// Encryption is the file of the store's encryption configuration; empty without one. Flags are all other
	// flags.
	Encryption string
	Flags      []string
}

// ForeignFlags compares the apiserver's running flags with those that keel sets. The other apiservers of a mesh
// need the same flags.
func ForeignFlags(own, running []string) (f Foreign) {
	for i, arg := range running {
		name, value, joined := strings.Cut(arg, "=")
		switch {
		case !strings.HasPrefix(name, "--"):
		case name == encryptionFlag && joined:
			f.Encryption = value
		case name == encryptionFlag && i+1 < len(running):
			f.Encryption = running[i+1]
		case !slices.Contains(own, arg):
			f.Flags = append(f.Flags, arg)
		}
	}
	return f
}
