// Package conntrack sets how many connections the kernel tracks for the rules of Services, and for how long: by
// default it forgets a connection that one side has closed within a minute, even if the answer is yet to come, and
// keeps an idle one for five days.
package conntrack

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"
)

// AddFlags adds the flags, named as kube-proxy's.
func (s *Settings) AddFlags(fs *pflag.FlagSet) {
	fs.IntVar(&s.MaxPerCore, "conntrack-max-per-core", s.MaxPerCore,
		"connections of Services that the kernel follows for each core (0 leaves the table as large as it is)")
	fs.IntVar(&s.Min, "conntrack-min", s.Min,
		"connections that it follows at least, whatever --conntrack-max-per-core says, unless that is 0")
	fs.DurationVar(&s.TCPEstablished, "conntrack-tcp-timeout-established", s.TCPEstablished,
		"how long an idle TCP connection is followed (0 leaves it as it is)")
	fs.DurationVar(&s.TCPCloseWait, "conntrack-tcp-timeout-close-wait", s.TCPCloseWait,
		"how long a TCP connection is followed that one side has closed (0 leaves it as it is)")
	fs.BoolVar(&s.TCPBeLiberal, "conntrack-tcp-be-liberal", s.TCPBeLiberal,
		"let packets through that are out of their connection's window")
	fs.DurationVar(&s.UDP, "conntrack-udp-timeout", s.UDP,
		"how long a UDP flow is followed that nobody has answered (0 leaves it as it is)")
	fs.DurationVar(&s.UDPStream, "conntrack-udp-timeout-stream", s.UDPStream,
		"how long a UDP flow is followed that was answered (0 leaves it as it is)")
}

// Validate returns an error, in one sentence, for an invalid flag.
func (s *Settings) Validate() error {
	for flag, value := range map[string]int{"--conntrack-max-per-core": s.MaxPerCore, "--conntrack-min": s.Min} {
		if value < 0 || value > math.MaxInt32/runtime.NumCPU() {
			return fmt.Errorf("%s: %d must be from 0 to %d", flag, value, math.MaxInt32/runtime.NumCPU())
		}
	}
	for flag, value := range map[string]time.Duration{
		"--conntrack-tcp-timeout-established": s.TCPEstablished, "--conntrack-tcp-timeout-close-wait": s.TCPCloseWait,
		"--conntrack-udp-timeout": s.UDP, "--conntrack-udp-timeout-stream": s.UDPStream,
	} {
		if value < 0 || value > 0 && value < time.Second || value.Seconds() > math.MaxInt32 {
			return fmt.Errorf("%s: %v must be 0 or from 1s to %v", flag, value, math.MaxInt32*time.Second)
		}
	}
	return nil
}

// Apply writes the settings to the kernel, in the network namespace of the calling thread. Settings of the whole
// machine are left to the agent in its first namespace.
func (s *Settings) Apply() error {
	var problems []error
	for _, w := range decide(*s, runtime.NumCPU(), number(maxFile), number(hashFile)) {
		err := os.WriteFile(w.path, []byte(w.value), 0)
		if err == nil || w.shared && mayNot(err) {
			continue
		}
		problems = append(problems, fmt.Errorf("setting %s to %s: %w", w.path, w.value, err))
	}
	return errors.Join(problems...)
}

// mayNot reports whether the kernel refuses to write a setting of the machine from another network namespace.
func mayNot(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.EOPNOTSUPP) ||
		errors.Is(err, syscall.EROFS)
}

// number reads a number of the kernel; 0 if it is missing.
func number(path string) int {
	content, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(content)))
	if err != nil {
		return 0
	}
	return n
}
