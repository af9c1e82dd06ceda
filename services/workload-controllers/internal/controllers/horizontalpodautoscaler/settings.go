package horizontalpodautoscaler

import (
	"fmt"
	"time"

	"github.com/spf13/pflag"
)

// Settings are the flags of the controller.
type Settings struct {
	// SyncPeriod is how often the metrics of an autoscaler are read.
	SyncPeriod time.Duration
	// Tolerance is the share of the target by which a metric may miss it without consequence.
	Tolerance float64
	// DownscaleStabilization is how long a recommendation for more replicas delays one for fewer, unless the autoscaler
	// sets its own window.
	DownscaleStabilization time.Duration
	// CPUInitialization is how long after a Pod's start its CPU counts only while the Pod is ready.
	CPUInitialization time.Duration
	// InitialReadinessDelay is how long after a Pod's start it counts as never ready if it becomes unready.
	InitialReadinessDelay time.Duration
}

// DefaultSettings returns the defaults of the flags.
func DefaultSettings() Settings {
	return Settings{SyncPeriod: 15 * time.Second, Tolerance: 0.1, DownscaleStabilization: 5 * time.Minute,
		CPUInitialization: 5 * time.Minute, InitialReadinessDelay: 30 * time.Second}
}

// leastPeriod keeps a mistyped flag from requesting metrics all the time.
const leastPeriod = time.Second

// AddFlags adds a flag for each setting, with its current value as default.
func (s *Settings) AddFlags(fs *pflag.FlagSet) {
	const prefix = "horizontal-pod-autoscaler-"
	fs.DurationVar(&s.SyncPeriod, prefix+"sync-period", s.SyncPeriod,
		"how often the metrics of each HorizontalPodAutoscaler are read")
	fs.Float64Var(&s.Tolerance, prefix+"tolerance", s.Tolerance,
		"by which share of its target a metric may miss it without a rescale, where the autoscaler does not say")
	fs.DurationVar(&s.DownscaleStabilization, prefix+"downscale-stabilization", s.DownscaleStabilization,
		"how long a recommendation for more replicas holds back one for fewer, where the autoscaler does not say")
	fs.DurationVar(&s.CPUInitialization, prefix+"cpu-initialization-period", s.CPUInitialization,
		"how long after its start the CPU of a Pod counts only while the Pod is ready")
	fs.DurationVar(&s.InitialReadinessDelay, prefix+"initial-readiness-delay", s.InitialReadinessDelay,
		"how long after its start a Pod that becomes unready counts as one that has never been ready")
}

// Validate returns an error for a flag whose value could never work.
func (s *Settings) Validate() error {
	const prefix = "--horizontal-pod-autoscaler-"
	if s.SyncPeriod < leastPeriod {
		return fmt.Errorf("%ssync-period: %v must be at least %v", prefix, s.SyncPeriod, leastPeriod)
	}
	if !(s.Tolerance >= 0 && s.Tolerance < 1) {
		return fmt.Errorf("%stolerance: %v must be at least 0 and less than 1", prefix, s.Tolerance)
	}
	for name, value := range map[string]time.Duration{
		"downscale-stabilization": s.DownscaleStabilization, "cpu-initialization-period": s.CPUInitialization,
		"initial-readiness-delay": s.InitialReadinessDelay,
	} {
		if value < 0 {
			return fmt.Errorf("%s%s: %v must be at least 0", prefix, name, value)
		}
	}
	return nil
}
