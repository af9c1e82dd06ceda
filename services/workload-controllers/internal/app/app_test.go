package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func TestFlagsSayWhatIsWrong(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	certificate := file("ca.crt", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
	text := file("text", "hello")
	for _, c := range []struct {
		name string
		args []string
		want string // the beginning of the message; empty for none
	}{
		{"defaults", nil, ""},
		{"a bundle", []string{"--root-ca-file", certificate, "--controllers", "rootca"}, ""},
		{"an unknown controller", []string{"--controllers", "deployment,jobs"},
			`--controllers: "jobs" is no controller`},
		{"no workers", []string{"--concurrent-syncs", "0"}, "--concurrent-syncs: 0 must be at least 1"},
		{"the most endpoints", []string{"--max-endpoints-per-slice", "1000", "--mirroring-max-endpoints-per-subset",
			"1", "--endpointslice-updates-batch-period", "10s"}, ""},
		{"too many endpoints", []string{"--max-endpoints-per-slice", "1001"},
			"--max-endpoints-per-slice: 1001 must be between 1 and 1000"},
		{"no mirrored endpoints", []string{"--mirroring-max-endpoints-per-subset", "0"},
			"--mirroring-max-endpoints-per-subset: 0 must be between 1 and 1000"},
		{"too long a batch", []string{"--endpoint-updates-batch-period", "10001ms"},
			"--endpoint-updates-batch-period: 10.001s must be between 0 and 10s"},
		{"a batch that is over", []string{"--mirroring-endpointslice-updates-batch-period", "-1s"},
			"--mirroring-endpointslice-updates-batch-period: -1s must be between 0 and 10s"},
		{"a missing bundle", []string{"--root-ca-file", filepath.Join(dir, "none")}, "--root-ca-file: open "},
		{"no bundle", []string{"--root-ca-file", text}, "--root-ca-file: " + text + " must begin with a PEM block"},
		{"rootca without a bundle", []string{"--controllers", "rootca"}, "--controllers: rootca needs --root-ca-file"},
		{"trustbundle without a bundle", []string{"--controllers", "trustbundle"},
			"--controllers: trustbundle needs --root-ca-file"},
		{"csrsigning without an authority", []string{"--controllers", "csrsigning"},
			"--controllers: csrsigning needs --cluster-signing-cert-file"},
		{"an authority without its key", []string{"--cluster-signing-cert-file", certificate},
			"--cluster-signing-cert-file: needs --cluster-signing-key-file"},
		{"certificates that last a minute", []string{"--cluster-signing-duration", "1m"},
			"--cluster-signing-duration: 1m0s must be at least 10m0s"},
		{"no range to share", []string{"--controllers", "nodeipam"}, "--controllers: nodeipam needs --cluster-cidr"},
		{"ranges of both families", []string{"--cluster-cidr", "10.244.0.0/16,fd00:10:244::/48"}, ""},
		{"a range with host bits", []string{"--cluster-cidr", "10.244.0.1/16"},
			`--cluster-cidr: "10.244.0.1/16" must be a network without host bits`},
		{"the old rule of CronJobs", []string{"--cronjob-too-many-missed", "stop"}, ""},
		{"no rule of CronJobs", []string{"--cronjob-too-many-missed", "often"},
			`--cronjob-too-many-missed: "often" is not known, allowed are start, stop`},
		{"autoscaling", []string{"--horizontal-pod-autoscaler-sync-period", "1s",
			"--horizontal-pod-autoscaler-tolerance", "0", "--horizontal-pod-autoscaler-downscale-stabilization", "0",
			"--horizontal-pod-autoscaler-cpu-initialization-period", "0",
			"--horizontal-pod-autoscaler-initial-readiness-delay", "0"}, ""},
		{"autoscaling all the time", []string{"--horizontal-pod-autoscaler-sync-period", "999ms"},
			"--horizontal-pod-autoscaler-sync-period: 999ms must be at least 1s"},
		{"a negative tolerance", []string{"--horizontal-pod-autoscaler-tolerance", "-0.1"},
			"--horizontal-pod-autoscaler-tolerance: -0.1 must be at least 0 and less than 1"},
		{"no tolerance that is a number", []string{"--horizontal-pod-autoscaler-tolerance", "NaN"},
			"--horizontal-pod-autoscaler-tolerance: NaN must be at least 0 and less than 1"},
		{"a tolerance of all", []string{"--horizontal-pod-autoscaler-tolerance", "1"},
			"--horizontal-pod-autoscaler-tolerance: 1 must be at least 0 and less than 1"},
		{"a negative window", []string{"--horizontal-pod-autoscaler-downscale-stabilization", "-1s"},
			"--horizontal-pod-autoscaler-downscale-stabilization: -1s must be at least 0"},
		{"a negative start", []string{"--horizontal-pod-autoscaler-cpu-initialization-period", "-1s"},
			"--horizontal-pod-autoscaler-cpu-initialization-period: -1s must be at least 0"},
		{"a negative delay", []string{"--horizontal-pod-autoscaler-initial-readiness-delay", "-1s"},
			"--horizontal-pod-autoscaler-initial-readiness-delay: -1s must be at least 0"},
		{"a missing kubeconfig", []string{"--kubeconfig", filepath.Join(dir, "none")}, "--kubeconfig: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			options, flags := newOptions(), pflag.NewFlagSet("", pflag.ContinueOnError)
			options.AddFlags(flags)
			if err := flags.Parse(c.args); err != nil {
				t.Fatal(err)
			}
			err := options.Validate()
			if c.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("message %v, want one line that begins with %q", err, c.want)
			}
		})
	}
}
