// Package server is the test server: what it answers, how it fails, and how it ends are all flags or requests, so that
// a test can bring a container into any state it needs.
package server

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"time"
)

// options is what the flags say.
type options struct {
	httpAddress string
	tcpAddress  string
	udpAddress  string
	sctpPort    uint
	grpcAddress string

	startDelay   time.Duration
	healthyAfter time.Duration
	unhealthyAt  time.Duration

	exitAfter time.Duration
	exitCode  int
	crash     bool

	ignoreTerm   bool
	termDelay    time.Duration
	termExitCode int

	logEvery           time.Duration
	terminationMessage string
	terminationPath    string
}

func parse(args []string, errOut io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("testserver serve", flag.ContinueOnError)
	flags.SetOutput(errOut)
	flags.StringVar(&o.httpAddress, "http", ":8080", "address of the HTTP server; empty for none")
	flags.StringVar(&o.tcpAddress, "tcp", "", "address of the TCP echo server; empty for none")
	flags.StringVar(&o.udpAddress, "udp", "",
		"address at which each datagram is answered by the host's name; empty for none")
	flags.UintVar(&o.sctpPort, "sctp", 0,
		"port at which each association of SCTP is answered by the host's name; 0 for none")
	flags.StringVar(&o.grpcAddress, "grpc", "", "address of the gRPC health server; empty for none")
	flags.DurationVar(&o.startDelay, "start-delay", 0, "wait before anything listens")
	flags.DurationVar(&o.healthyAfter, "healthy-after", 0, "fail the health checks until then")
	flags.DurationVar(&o.unhealthyAt, "unhealthy-after", 0, "fail the health checks from then on; 0 for never")
	flags.DurationVar(&o.exitAfter, "exit-after", 0, "end by itself after that time; 0 for never")
	flags.IntVar(&o.exitCode, "exit-code", 0, "exit status when it ends by itself")
	flags.BoolVar(&o.crash, "crash", false, "end by itself with a signal (SIGKILL) instead of an exit status")
	flags.BoolVar(&o.ignoreTerm, "ignore-term", false, "log SIGTERM and go on")
	flags.DurationVar(&o.termDelay, "term-delay", 0, "go on serving for that time after SIGTERM")
	flags.IntVar(&o.termExitCode, "term-exit-code", 0, "exit status after SIGTERM")
	flags.DurationVar(&o.logEvery, "log-every", 0, "print a numbered line at that interval; 0 for never")
	flags.StringVar(&o.terminationMessage, "termination-message", "",
		"what to write to the termination log before ending")
	flags.StringVar(&o.terminationPath, "termination-path", "/dev/termination-log", "file of the termination log")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if o.sctpPort > math.MaxUint16 {
		return o, fmt.Errorf("-sctp: %d is no port", o.sctpPort)
	}
	if o.exitCode < 0 || o.exitCode > 255 || o.termExitCode < 0 || o.termExitCode > 255 {
		return o, errors.New("an exit status is between 0 and 255")
	}
	return o, nil
}
