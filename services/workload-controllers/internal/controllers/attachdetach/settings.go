package attachdetach

import "github.com/spf13/pflag"

// Settings are the controller's flags.
type Settings struct {
	// KeepForever leaves a volume attached to a node that is not ready and still uses it, however long that takes,
	// until a user declares the node to be off.
	KeepForever bool
}

// AddFlags adds the flags.
func (s *Settings) AddFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&s.KeepForever, "disable-force-detach-on-timeout", s.KeepForever,
		"do not take a volume that no Pod has any more from a node that uses it and has not been ready for 6 minutes; "+
			"the taint node.kubernetes.io/out-of-service still does so at once")
}
