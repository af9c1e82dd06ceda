package cpupin

import (
	"fmt"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/utils/cpuset"
)

// The policies, as the kubelet names them.
const (
	None   = "none"
	Static = "static"
)

// Settings are the flags.
type Settings struct {
	Policy string
	// Every is how often the CPUs of running instances are compared with the desired ones.
	Every time.Duration
}

// DefaultSettings returns the settings of a node without flags.
func DefaultSettings() Settings { return Settings{Policy: None, Every: 10 * time.Second} }

// AddFlags adds the flags.
func (s *Settings) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&s.Policy, "cpu-manager-policy", s.Policy,
		"static gives containers of Guaranteed Pods that request whole cpus these cpus for themselves; none has all "+
			"share")
	fs.DurationVar(&s.Every, "cpu-manager-reconcile-period", s.Every,
		"how often --cpu-manager-policy=static compares the cpus of what runs with what they shall be")
}

// Validate returns an error if the flags are invalid.
func (s *Settings) Validate() error {
	switch {
	case s.Policy != None && s.Policy != Static && s.Policy != "":
		return fmt.Errorf("--cpu-manager-policy: %q must be %s or %s", s.Policy, None, Static)
	case s.Policy == Static && s.Every <= 0:
		return fmt.Errorf("--cpu-manager-reconcile-period: %v must be more than 0", s.Every)
	}
	return nil
}

// IsStatic reports whether exclusive CPUs are assigned.
func (s *Settings) IsStatic() bool { return s.Policy == Static }

// reserve returns the CPUs that are never assigned: the named ones, or as many as milli requires.
func reserve(machine Machine, named cpuset.CPUSet, milli int64) (cpuset.CPUSet, error) {
	all := machine.all()
	n := int((milli + 999) / 1000)
	switch {
	case !named.IsSubsetOf(all):
		return all, fmt.Errorf("--reserved-cpus: the machine has %s, not %s", all, named.Difference(all))
	case !named.IsEmpty():
		return named, nil
	case n == 0:
		return all, fmt.Errorf("--cpu-manager-policy: %s needs reserved cpus: --reserved-cpus, or cpu in "+
			"--system-reserved or --kube-reserved", Static)
	}
	return take(machine, all, min(n, all.Size())), nil
}
