package nodecertificates

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/pflag"
)

// The flags, the same as the kubelet's.
const (
	flagBootstrap    = "bootstrap-kubeconfig"
	flagDir          = "cert-dir"
	flagRotate       = "rotate-certificates"
	flagRotateServer = "rotate-server-certificates"
)

// Settings say which certificates the agent requests itself.
type Settings struct {
	// Bootstrap is a kubeconfig whose user may request the node's first client certificate; empty for none.
	Bootstrap string
	// Dir is the folder of the certificates.
	Dir string
	// Rotate renews the client certificate before it expires.
	Rotate bool
	// RotateServer requests the certificate of the node API, and renews it.
	RotateServer bool
}

// AddFlags adds the flags.
func (s *Settings) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&s.Bootstrap, flagBootstrap, s.Bootstrap,
		"kubeconfig by which the node asks for its first client certificate, if --kubeconfig is not there or its "+
			"certificate has expired; the file --kubeconfig is then written")
	fs.StringVar(&s.Dir, flagDir, s.Dir,
		"directory of the certificates that the agent asks for; ROOT-DIR/pki by default")
	fs.BoolVar(&s.Rotate, flagRotate, s.Rotate,
		"renew the node's client certificate before it expires; the new ones are kept in --cert-dir")
	fs.BoolVar(&s.RotateServer, flagRotateServer, s.RotateServer,
		"ask for the certificate of the node API, for the Node's addresses, and renew it before it expires; it is "+
			"kept in --cert-dir, and --tls-cert-file is shown until it is there, if given")
}

// Own reports whether the agent maintains a client certificate of its own.
func (s *Settings) Own() bool { return s.Bootstrap != "" || s.Rotate }

// Validate returns an error if the flags are invalid. It does not check the kubeconfig that --kubeconfig names.
func (s *Settings) Validate(kubeconfig string) error {
	switch {
	case s.Dir != "" && !filepath.IsAbs(s.Dir):
		return fmt.Errorf("--%s: %q must be an absolute path", flagDir, s.Dir)
	case s.Bootstrap != "" && kubeconfig == "":
		return fmt.Errorf("--%s: --kubeconfig must name the file that is written", flagBootstrap)
	case s.Rotate && kubeconfig == "":
		return fmt.Errorf("--%s: --kubeconfig must name the file with the node's client certificate", flagRotate)
	}
	return nil
}
