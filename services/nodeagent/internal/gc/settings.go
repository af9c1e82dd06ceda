package gc

import (
	"fmt"
	"time"

	"github.com/spf13/pflag"
)

// The flags: the kubelet's, and one for a maximum age, for which the kubelet has only a configuration field.
const (
	flagHigh   = "image-gc-high-threshold"
	flagLow    = "image-gc-low-threshold"
	flagMinAge = "minimum-image-ttl-duration"
	flagMaxAge = "maximum-image-ttl-duration"
)

// Settings determine which images are removed.
type Settings struct {
	// Unused images are removed from HighPercent use of their file system on, down to LowPercent.
	HighPercent, LowPercent int
	// MinAge is how long a new image is kept for the container that it was pulled for.
	MinAge time.Duration
	// MaxAge is how long an image may be unused, regardless of the file system; 0 means forever.
	MaxAge time.Duration
}

// DefaultSettings returns the settings of a node without flags.
func DefaultSettings() Settings {
	return Settings{HighPercent: 85, LowPercent: 80, MinAge: 2 * time.Minute}
}

// AddFlags adds the flags.
func (s *Settings) AddFlags(fs *pflag.FlagSet) {
	fs.IntVar(&s.HighPercent, flagHigh, s.HighPercent, "percentage of disk use from which unused images are removed")
	fs.IntVar(&s.LowPercent, flagLow, s.LowPercent, "percentage of disk use down to which unused images are removed")
	fs.DurationVar(&s.MinAge, flagMinAge, s.MinAge, "how long a new image is kept although nothing uses it")
	fs.DurationVar(&s.MaxAge, flagMaxAge, s.MaxAge,
		"how long an image may be unused until it is removed, counted from the agent's start at the earliest; 0 is "+
			"for ever")
}

// Validate returns an error if the flags are invalid.
func (s *Settings) Validate() error {
	switch {
	case s.LowPercent < 0 || s.LowPercent >= s.HighPercent || s.HighPercent > 100:
		return fmt.Errorf("--%s: %d must be above --%s (%d) and at most 100", flagHigh, s.HighPercent, flagLow,
			s.LowPercent)
	case s.MinAge <= 0:
		return fmt.Errorf("--%s: %v must be above 0s", flagMinAge, s.MinAge)
	case s.MaxAge < 0:
		return fmt.Errorf("--%s: %v must be at least 0s", flagMaxAge, s.MaxAge)
	case s.MaxAge > 0 && s.MaxAge <= s.MinAge:
		return fmt.Errorf("--%s: %v must be above --%s (%v), or 0s", flagMaxAge, s.MaxAge, flagMinAge, s.MinAge)
	}
	return nil
}
