package plan

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Etcd is an etcd cluster in which a mesh has its store, in place of the embedded one.
type Etcd struct {
	// Servers are the client URLs of its members.
	Servers []string `json:"servers"`
	// CAFile, CertFile and KeyFile are absolute paths of the TLS files by which it is reached; empty without TLS.
	CAFile   string `json:"caFile,omitempty"`
	CertFile string `json:"certFile,omitempty"`
	KeyFile  string `json:"keyFile,omitempty"`
}

// plainURL matches URLs of servers without characters that have a special meaning in a unit.
var plainURL = regexp.MustCompile(`^https?://([a-zA-Z0-9._-]+|\[[0-9a-fA-F:]+\])(:[0-9]+)?$`)

// Check says in one sentence what is wrong with the values.
func (e *Etcd) Check() error {
	if len(e.Servers) == 0 {
		return errors.New("--etcd-servers is missing: the client URLs of the etcd cluster")
	}
	for _, server := range e.Servers {
		if !plainURL.MatchString(server) {
			return fmt.Errorf("--etcd-servers: %q must be the client URL of a server, for example "+
				"https://etcd-1.example.com:2379", server)
		}
	}
	if (e.CertFile == "") != (e.KeyFile == "") {
		return errors.New("--etcd-certfile: needs --etcd-keyfile, and the reverse")
	}
	for _, file := range []struct{ flag, path string }{
		{"--etcd-cafile", e.CAFile}, {"--etcd-certfile", e.CertFile}, {"--etcd-keyfile", e.KeyFile},
	} {
		if file.path == "" {
			continue
		}
		if err := CheckUnitPath(file.flag, file.path); err != nil {
			return err
		}
	}
	return nil
}

// At names the cluster by its servers.
func (e *Etcd) At() string { return strings.Join(e.Servers, ",") }

// Flags returns the flags by which the apiserver, and its program's store commands, use the cluster.
func (e *Etcd) Flags() []string {
	flags := []string{"--etcd-servers=" + e.At()}
	for _, file := range []struct{ flag, path string }{
		{"--etcd-cafile", e.CAFile}, {"--etcd-certfile", e.CertFile}, {"--etcd-keyfile", e.KeyFile},
	} {
		if file.path != "" {
			flags = append(flags, file.flag+"="+file.path)
		}
	}
	return flags
}
