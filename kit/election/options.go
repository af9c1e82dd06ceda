package election

import "github.com/spf13/pflag"

// Options say how a process stands beside others.
type Options struct {
	// Fallback leaves each role to copies that are none, and leads it only while there is no such copy.
	Fallback bool
}

// AddFlags binds --fallback.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&o.Fallback, "fallback", o.Fallback,
		"hand each Lease over to a copy without this flag as soon as one stands for it, and take it back when none is "+
			"left; for copies that start a mesh whose daemons then run on the mesh itself")
}
