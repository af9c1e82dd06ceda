package nodehealth

import (
	"fmt"
	"time"

	"github.com/spf13/pflag"
)

// Settings say how patient the collector is. The flags have the names that they have in kube-controller-manager.
type Settings struct {
	// MonitorGrace is how long a node may be silent before it counts as lost.
	MonitorGrace time.Duration
	// StartupGrace is the same for a node that has never reported or has no Lease yet.
	StartupGrace time.Duration
	// EvictionRate is how many nodes of a zone are given up per second.
	EvictionRate float64
	// SecondaryEvictionRate is that of a large zone of which much is not ready.
	SecondaryEvictionRate float64
	// LargeZone is the number of nodes that a large zone exceeds: of a smaller one no node is given up while much of it
	// is not ready.
	LargeZone int
	// UnhealthyZone is the share of nodes that are not ready from which on that is much.
	UnhealthyZone float64
}

// DefaultSettings are those of today's API.
func DefaultSettings() Settings {
	return Settings{
		MonitorGrace: 50 * time.Second, StartupGrace: time.Minute,
		EvictionRate: 0.1, SecondaryEvictionRate: 0.01, LargeZone: 50, UnhealthyZone: 0.55,
	}
}

// AddFlags binds the settings.
func (s *Settings) AddFlags(fs *pflag.FlagSet) {
	fs.DurationVar(&s.MonitorGrace, "node-monitor-grace-period", s.MonitorGrace,
		"how long a node may be silent before it counts as lost; nodes must renew their Lease several times in it")
	fs.DurationVar(&s.StartupGrace, "node-startup-grace-period", s.StartupGrace,
		"the same for a node that has never reported or has no Lease yet")
	fs.Float64Var(&s.EvictionRate, "node-eviction-rate", s.EvictionRate,
		"how many nodes of a zone that are not ready lose their Pods per second")
	fs.Float64Var(&s.SecondaryEvictionRate, "secondary-node-eviction-rate", s.SecondaryEvictionRate,
		"the same while much of a large zone is not ready")
	fs.IntVar(&s.LargeZone, "large-cluster-size-threshold", s.LargeZone,
		"a zone of no more nodes than these loses no Pods while much of it is not ready")
	fs.Float64Var(&s.UnhealthyZone, "unhealthy-zone-threshold", s.UnhealthyZone,
		"the share of nodes, at least 3, that are not ready from which on much of a zone is not ready")
}

// Validate names the first setting that could never work.
func (s *Settings) Validate() error {
	switch {
	case s.MonitorGrace < time.Second:
		return fmt.Errorf("--node-monitor-grace-period: %v is less than 1s", s.MonitorGrace)
	case s.StartupGrace < time.Second:
		return fmt.Errorf("--node-startup-grace-period: %v is less than 1s", s.StartupGrace)
	case !(s.EvictionRate >= 0): // Also for a rate that is no number.
		return fmt.Errorf("--node-eviction-rate: %v is less than 0", s.EvictionRate)
	case !(s.SecondaryEvictionRate >= 0):
		return fmt.Errorf("--secondary-node-eviction-rate: %v is less than 0", s.SecondaryEvictionRate)
	case s.LargeZone < 0:
		return fmt.Errorf("--large-cluster-size-threshold: %d is less than 0", s.LargeZone)
	case !(s.UnhealthyZone >= 0 && s.UnhealthyZone <= 1):
		return fmt.Errorf("--unhealthy-zone-threshold: %v is not between 0 and 1", s.UnhealthyZone)
	}
	return nil
}

// period is the time between two looks at the Leases: a node is lost after its grace period and at most one such
// period more.
func (s *Settings) period() time.Duration { return s.MonitorGrace / 5 }
