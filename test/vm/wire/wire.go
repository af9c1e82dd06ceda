// Package wire is what the tests and the program inside their machines have agreed on.
package wire

// Port is where the program inside listens, Address the same in the form of a listener.
const (
	Port    = 7000
	Address = ":7000"
)

// The requests: GET BootPath returns the ID of this boot of the machine; POST RunPath runs the command of its
// ArgumentKeys with the body as standard input.
const (
	BootPath    = "/boot"
	RunPath     = "/run"
	ArgumentKey = "arg"
)

// CodeTrailer is how a command ended; NotRun stands there for one that could not be started.
const (
	CodeTrailer = "Exit-Code"
	NotRun      = 127
)
