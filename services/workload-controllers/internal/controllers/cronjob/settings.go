package cronjob

import (
	"fmt"

	"github.com/spf13/pflag"
)

// TooManyMissed is what becomes of a CronJob that has missed more than a hundred of its times.
type TooManyMissed string

const (
	// StartLatest makes up for the latest time.
	StartLatest TooManyMissed = "start"
	// StartNone waits until a user sets a starting deadline that reaches back less far, as Kubernetes did once.
	StartNone TooManyMissed = "stop"
)

// Settings are the controller's flags.
type Settings struct{ TooManyMissed TooManyMissed }

// DefaultSettings are those of today's Kubernetes.
func DefaultSettings() Settings { return Settings{TooManyMissed: StartLatest} }

// AddFlags adds the flags.
func (s *Settings) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar((*string)(&s.TooManyMissed), "cronjob-too-many-missed", string(s.TooManyMissed),
		"what becomes of a CronJob that has missed more than 100 of its times: start makes up for the latest, stop "+
			"waits until its startingDeadlineSeconds reach back less far")
}

// Validate says what is wrong with the flags.
func (s *Settings) Validate() error {
	if s.TooManyMissed != StartLatest && s.TooManyMissed != StartNone {
		return fmt.Errorf("--cronjob-too-many-missed: %q is not known, allowed are %s, %s",
			s.TooManyMissed, StartLatest, StartNone)
	}
	return nil
}
