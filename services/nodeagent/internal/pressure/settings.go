package pressure

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"

	"keelson.dev/kit/seconds"
)

// The flags, the same as the kubelet's.
const (
	flagHard       = "eviction-hard"
	flagSoft       = "eviction-soft"
	flagSoftGrace  = "eviction-soft-grace-period"
	flagReclaim    = "eviction-minimum-reclaim"
	flagMaxGrace   = "eviction-max-pod-grace-period"
	flagTransition = "eviction-pressure-transition-period"
)

// Settings are the flags as given; Rules parses them.
type Settings struct {
	Hard, Soft, SoftGrace, Reclaim []string
	// MaxPodGrace is in seconds.
	MaxPodGrace int
	Transition  time.Duration
}

// DefaultSettings returns the settings of a node without flags.
func DefaultSettings() Settings {
	return Settings{
		Hard: []string{"memory.available<100Mi", "nodefs.available<10%", "nodefs.inodesFree<5%",
			"imagefs.available<15%", "imagefs.inodesFree<5%"},
		Transition: 5 * time.Minute,
	}
}

// AddFlags adds the flags.
func (s *Settings) AddFlags(fs *pflag.FlagSet) {
	fs.StringSliceVar(&s.Hard, flagHard, s.Hard,
		"how much must be left of the node at least, as SIGNAL<QUANTITY or SIGNAL<PERCENT%, comma-separated: below it "+
			"Pods are evicted at once; empty for none")
	fs.StringSliceVar(&s.Soft, flagSoft, s.Soft,
		"as --eviction-hard, but Pods are evicted only after --eviction-soft-grace-period and have time to stop")
	fs.StringSliceVar(&s.SoftGrace, flagSoftGrace, s.SoftGrace,
		"for how long a signal may be below its threshold of --eviction-soft, as SIGNAL=DURATION, comma-separated")
	fs.StringSliceVar(&s.Reclaim, flagReclaim, s.Reclaim,
		"how much more than its threshold a signal must have until it counts as relieved, as SIGNAL=QUANTITY or "+
			"SIGNAL=PERCENT%, comma-separated")
	fs.IntVar(&s.MaxPodGrace, flagMaxGrace, s.MaxPodGrace,
		"seconds that a Pod may take at most to stop when it is evicted for --eviction-soft")
	fs.DurationVar(&s.Transition, flagTransition, s.Transition,
		"how long the node says that it is short of something after it was")
}

// Validate returns an error if the flags are invalid.
func (s *Settings) Validate() error {
	if _, err := s.Rules(); err != nil {
		return err
	}
	if s.MaxPodGrace < 0 {
		return fmt.Errorf("--%s: %d must be at least 0", flagMaxGrace, s.MaxPodGrace)
	}
	if s.Transition < 0 {
		return fmt.Errorf("--%s: %v must be at least 0s", flagTransition, s.Transition)
	}
	return nil
}

// Rules returns the rules that the flags define.
func (s *Settings) Rules() (Rules, error) {
	rules := Rules{MaxPodGrace: seconds.Of(s.MaxPodGrace), Transition: s.Transition}
	graces, err := pairs(flagSoftGrace, s.SoftGrace, "=", parseGrace)
	if err != nil {
		return Rules{}, err
	}
	reclaims, err := pairs(flagReclaim, s.Reclaim, "=", parseAmount)
	if err != nil {
		return Rules{}, err
	}
	hard, err := thresholds(flagHard, s.Hard, reclaims)
	if err != nil {
		return Rules{}, err
	}
	soft, err := thresholds(flagSoft, s.Soft, reclaims)
	if err != nil {
		return Rules{}, err
	}
	for i := range soft {
		t := &soft[i]
		grace, ok := graces[t.Signal]
		if !ok {
			return Rules{}, fmt.Errorf("--%s: %s needs a period in --%s", flagSoft, t.Signal, flagSoftGrace)
		}
		t.Soft, t.Grace = true, grace
		delete(graces, t.Signal)
	}
	for _, signal := range signals {
		if _, left := graces[signal]; left {
			return Rules{}, fmt.Errorf("--%s: %s has no threshold in --%s", flagSoftGrace, signal, flagSoft)
		}
	}
	for _, t := range slices.Concat(hard, soft) {
		if !t.Least.off() {
			rules.Thresholds = append(rules.Thresholds, t)
		}
	}
	return rules, nil
}

// thresholds parses the thresholds of a flag, in the order of the signals, including those that are switched off.
func thresholds(flag string, texts []string, reclaims map[Signal]Amount) ([]Threshold, error) {
	leasts, err := pairs(flag, texts, "<", parseAmount)
	if err != nil {
		return nil, err
	}
	var out []Threshold
	for _, signal := range signals {
		if least, ok := leasts[signal]; ok {
			out = append(out, Threshold{Signal: signal, Least: least, Reclaim: reclaims[signal]})
		}
	}
	return out, nil
}

// pairs parses a flag whose elements are a signal and a value. The last value of a signal wins.
func pairs[V any](flag string, texts []string, separator string, parse func(string) (V, error)) (map[Signal]V, error) {
	out := map[Signal]V{}
	for _, text := range texts {
		name, value, ok := strings.Cut(strings.TrimSpace(text), separator)
		signal := Signal(name)
		if !ok {
			return nil, fmt.Errorf("--%s: %q must have the form SIGNAL%sVALUE", flag, text, separator)
		}
		if !slices.Contains(signals, signal) {
			return nil, fmt.Errorf("--%s: %q is no signal; there are %v", flag, name, signals)
		}
		parsed, err := parse(value)
		if err != nil {
			return nil, fmt.Errorf("--%s: %s: %w", flag, signal, err)
		}
		out[signal] = parsed
	}
	return out, nil
}

// off reports whether a threshold is switched off: none of the capacity, or all of it, as in the kubelet.
func (a Amount) off() bool { return a.Percent == 100 || a.Percent == 0 && a.Quantity.IsZero() }

func parseAmount(text string) (Amount, error) {
	if number, isPercent := strings.CutSuffix(text, "%"); isPercent {
		percent, err := strconv.ParseFloat(number, 64)
		if err != nil || !(percent >= 0 && percent <= 100) {
			return Amount{}, fmt.Errorf("%q must be from 0%% to 100%%", text)
		}
		return Amount{Percent: percent}, nil
	}
	quantity, err := resource.ParseQuantity(text)
	if err != nil || quantity.Sign() < 0 {
		return Amount{}, fmt.Errorf("%q must be a quantity of at least 0, like 100Mi, or a percentage, like 10%%", text)
	}
	return Amount{Quantity: quantity}, nil
}

func parseGrace(text string) (time.Duration, error) {
	grace, err := time.ParseDuration(text)
	if err != nil || grace < 0 {
		return 0, fmt.Errorf("%q must be a duration of at least 0, like 90s", text)
	}
	return grace, nil
}
