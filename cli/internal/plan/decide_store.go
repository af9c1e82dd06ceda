package plan

import (
	"net/netip"
	"slices"
	"strings"
)

// StorePort is the key of the port at which the stores of several machines reach each other.
const StorePort = "store"

// storePort is the one of the field.
const storePort = 2380

// The store's own authority signs the certificates by which machines share it: one of the mesh's authority lets nobody
// in.
const (
	StoreAuthority     = "store-ca"
	StoreAuthorityPath = "pki/" + StoreAuthority + ".crt"
	storePeer          = "store-peer"
)

// encryptionFile is where a machine that has joined the control plane has the configuration of what is encrypted.
const encryptionFile = "encryption.yaml"

// encryptionFlag names that file to the apiserver.
const encryptionFlag = "--encryption-provider-config"

// Encryption is the configuration of what is encrypted in the store, on a machine that was given one.
func (l Layout) Encryption() string { return l.PKI(encryptionFile) }

// storeCertificate is what a machine's store shows to those of others.
func storeCertificate(host string, machine []netip.Addr) Certificate {
	return Certificate{File: storePeer, User: "keelson-store", Hosts: []string{"localhost", host},
		Addresses: slices.Clone(machine), Store: true}
}

// sharesStore tells whether other machines may have the store, too.
func (in ProcessInput) sharesStore() bool { return in.Ports[StorePort] != 0 }

func (in ProcessInput) storeAddress() netip.AddrPort {
	return netip.AddrPortFrom(in.Advertise, uint16(in.Ports[StorePort]))
}

// StoreURL is where other machines reach this one's store; empty where they do not.
func (in ProcessInput) StoreURL() string {
	if !in.sharesStore() {
		return ""
	}
	return "https://" + in.storeAddress().String()
}

// storeFlags are the apiserver's about what it shares with those of other machines.
func (in ProcessInput) storeFlags() (args []string) {
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

// SharedFiles are what all machines of a control plane have in their folders of certificates: the authorities of the
// mesh and of the store, and the key of ServiceAccounts' tokens. The last one is written last.
func SharedFiles() []string {
	return []string{"service-account.key", StoreAuthority + ".crt", StoreAuthority + ".key", "ca.crt", "ca.key"}
}

// Foreign is what the apiserver of a machine runs with that keel has not told it.
type Foreign struct {
	// Encryption is the file of what is encrypted in the store; empty without one. Flags are all others.
	Encryption string
	Flags      []string
}

// ForeignFlags compares how the apiserver runs with how keel starts it. The other apiservers of a mesh have to run in
// the same way.
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
