package app

import (
	"testing"
	"time"

	"github.com/spf13/pflag"
)

// How many finished Pods may stay if no number is configured.
func TestTerminatedPodThreshold(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want int
	}{
		"by default": {nil, 12_500},
		"as asked":   {[]string{"--terminated-pod-gc-threshold=7"}, 7},
		"none":       {[]string{"--terminated-pod-gc-threshold=0"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			o := Daemon().Options.(*options)
			flags := pflag.NewFlagSet("", pflag.ContinueOnError)
			o.AddFlags(flags)
			if err := flags.Parse(test.args); err != nil {
				t.Fatal(err)
			}
			if got := o.config.TerminatedPodThreshold; got != test.want {
				t.Errorf("%d Pods may stay, want %d", got, test.want)
			}
		})
	}
}

// Bad patience is refused before anything starts, and named.
func TestNodeHealthFlags(t *testing.T) {
	o := Daemon().Options.(*options)
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	o.AddFlags(flags)
	if err := flags.Parse([]string{"--node-monitor-grace-period=20s", "--node-eviction-rate=-1"}); err != nil {
		t.Fatal(err)
	}
	if o.config.NodeHealth.MonitorGrace != 20*time.Second {
		t.Errorf("patience %v", o.config.NodeHealth.MonitorGrace)
	}
	if err := o.Validate(); err == nil || err.Error() != "--node-eviction-rate: -1 is less than 0" {
		t.Errorf("error %v", err)
	}
}
