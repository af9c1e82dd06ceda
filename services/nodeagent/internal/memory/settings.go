// Package memory determines what a node does with the memory of Pods besides limiting it: how much swap containers get,
// how much memory the kernel protects, from where on it throttles containers, and whether it kills all processes of a
// container that is out of memory. The settings are fields of KubeletConfiguration.
package memory

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/pflag"
)

// The values of SwapBehavior.
const (
	noSwap      = "NoSwap"
	limitedSwap = "LimitedSwap"
)

// The values of ReservationPolicy.
const (
	reserveNone   = "None"
	reserveTiered = "TieredReservation"
)

// Settings are the flags.
type Settings struct {
	// FailSwapOn makes a node with swap refuse to start.
	FailSwapOn bool
	// SwapBehavior is NoSwap or LimitedSwap.
	SwapBehavior string
	// ThrottlingFactor is a number above 0 and at most 1; empty disables throttling.
	ThrottlingFactor string
	// ReservationPolicy is None or TieredReservation.
	ReservationPolicy string
	// SingleProcessOOMKill is a boolean; empty for the default of the machine's cgroups.
	SingleProcessOOMKill string
}

// DefaultSettings returns the settings of a node without flags. Unlike a kubelet, it starts with swap on: its Pods have
// none of it.
func DefaultSettings() Settings {
	return Settings{SwapBehavior: noSwap, ReservationPolicy: reserveNone}
}

// AddFlags adds the flags.
func (s *Settings) AddFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&s.FailSwapOn, "fail-swap-on", s.FailSwapOn, "refuse to start on a machine with swap on")
	fs.StringVar(&s.SwapBehavior, "memory-swap-behavior", s.SwapBehavior,
		"the swap of Pods: NoSwap, or LimitedSwap for containers of Burstable Pods, in proportion to the memory that "+
			"they request (cgroups of version 2)")
	fs.StringVar(&s.ThrottlingFactor, "memory-throttling-factor", s.ThrottlingFactor,
		"throttle a container (memory.high) that uses more than its memory request plus this part of the difference "+
			"between limit and request; above 0 and at most 1; empty disables it (cgroups of version 2)")
	fs.StringVar(&s.ReservationPolicy, "memory-reservation-policy", s.ReservationPolicy,
		"protect the memory that Pods request: None, or TieredReservation for memory.min of Guaranteed and "+
			"memory.low of Burstable Pods (cgroups of version 2)")
	fs.StringVar(&s.SingleProcessOOMKill, "single-process-oom-kill", s.SingleProcessOOMKill,
		"true if the kernel kills one process of a container that is out of memory, false if it kills all of them; "+
			"the default is false, and true with cgroups of version 1, which cannot do otherwise")
}

// Validate returns an error if the flags are invalid on any machine.
func (s *Settings) Validate() error {
	if behaviors := []string{noSwap, limitedSwap}; !slices.Contains(behaviors, s.SwapBehavior) {
		return fmt.Errorf("--memory-swap-behavior: %q must be one of %v", s.SwapBehavior, behaviors)
	}
	if policies := []string{reserveNone, reserveTiered}; !slices.Contains(policies, s.ReservationPolicy) {
		return fmt.Errorf("--memory-reservation-policy: %q must be one of %v", s.ReservationPolicy, policies)
	}
	if _, err := s.factor(); err != nil {
		return err
	}
	_, err := s.singleKill()
	return err
}

// Tiered reports whether the kernel protects the memory that Pods request.
func (s *Settings) Tiered() bool { return s.ReservationPolicy == reserveTiered }

// factor returns 0 without a factor.
func (s *Settings) factor() (float64, error) {
	if s.ThrottlingFactor == "" {
		return 0, nil
	}
	factor, err := strconv.ParseFloat(s.ThrottlingFactor, 64)
	if inRange := factor > 0 && factor <= 1; err != nil || !inRange { // NaN is in none
		return 0, fmt.Errorf("--memory-throttling-factor: %q must be a number above 0 and at most 1, like 0.9",
			s.ThrottlingFactor)
	}
	return factor, nil
}

// singleKill returns nil if the setting is not given.
func (s *Settings) singleKill() (*bool, error) {
	if s.SingleProcessOOMKill == "" {
		return nil, nil
	}
	single, err := strconv.ParseBool(s.SingleProcessOOMKill)
	if err != nil {
		return nil, fmt.Errorf("--single-process-oom-kill: %q must be true or false", s.SingleProcessOOMKill)
	}
	return &single, nil
}
