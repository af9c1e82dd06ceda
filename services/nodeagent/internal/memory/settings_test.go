package memory

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// refused returns the settings' error; empty if they are valid.
func refused(s Settings) string {
	if err := s.Validate(); err != nil {
		return err.Error()
	}
	return ""
}

func TestValidate(t *testing.T) {
	const factor = " must be a number above 0 and at most 1, like 0.9"
	for _, row := range []struct{ args, want string }{
		{"", ""},
		{"--fail-swap-on", ""},
		{"--memory-swap-behavior=LimitedSwap", ""},
		{"--memory-swap-behavior=UnlimitedSwap",
			`--memory-swap-behavior: "UnlimitedSwap" must be one of [NoSwap LimitedSwap]`},
		{"--memory-swap-behavior=", `--memory-swap-behavior: "" must be one of [NoSwap LimitedSwap]`},
		{"--memory-throttling-factor=1", ""},
		{"--memory-throttling-factor=0.0001", ""},
		{"--memory-throttling-factor=0", `--memory-throttling-factor: "0"` + factor},
		{"--memory-throttling-factor=-0.1", `--memory-throttling-factor: "-0.1"` + factor},
		{"--memory-throttling-factor=1.0001", `--memory-throttling-factor: "1.0001"` + factor},
		{"--memory-throttling-factor=NaN", `--memory-throttling-factor: "NaN"` + factor},
		{"--memory-throttling-factor=most", `--memory-throttling-factor: "most"` + factor},
		{"--memory-reservation-policy=TieredReservation", ""},
		{"--memory-reservation-policy=All",
			`--memory-reservation-policy: "All" must be one of [None TieredReservation]`},
		{"--single-process-oom-kill=true", ""},
		{"--single-process-oom-kill=false", ""},
		{"--single-process-oom-kill=maybe", `--single-process-oom-kill: "maybe" must be true or false`},
	} {
		s := DefaultSettings()
		fs := pflag.NewFlagSet("", pflag.ContinueOnError)
		s.AddFlags(fs)
		if err := fs.Parse(strings.Fields(row.args)); err != nil {
			t.Fatal(err)
		}
		if got := refused(s); got != row.want {
			t.Errorf("%s: %q, want %q", row.args, got, row.want)
		}
	}
}

// A machine that cannot hold a setting refuses it in one sentence.
func TestRulesOfAMachine(t *testing.T) {
	v1, v2 := Machine{Memory: 8 << 30}, Machine{CgroupV2: true, Memory: 8 << 30}
	swapping := func(m Machine) Machine {
		m.Swap = 3 << 20
		return m
	}
	limited := func(s *Settings) { s.SwapBehavior = limitedSwap }
	const lacks = " needs cgroups of version 2, and this machine has version 1"
	for _, row := range []struct {
		name    string
		set     func(*Settings)
		machine Machine
		want    string
	}{
		{"nothing on version 1", func(*Settings) {}, swapping(v1), ""},
		{"nothing on version 2", func(*Settings) {}, swapping(v2), ""},
		{"no swap to fail for", func(s *Settings) { s.FailSwapOn = true }, v2, ""},
		{"swap to fail for", func(s *Settings) { s.FailSwapOn = true }, swapping(v1),
			"--fail-swap-on: this machine has 3 MiB of swap on: end it with swapoff -a and a line less in " +
				"/etc/fstab, or start with --fail-swap-on=false"},
		{"limited swap", limited, swapping(v2), ""},
		{"limited swap on version 1", limited, v1, "--memory-swap-behavior: LimitedSwap" + lacks},
		{"a factor on version 1", func(s *Settings) { s.ThrottlingFactor = "1" }, v1,
			"--memory-throttling-factor" + lacks},
		{"reservation on version 1", func(s *Settings) { s.ReservationPolicy = reserveTiered }, v1,
			"--memory-reservation-policy: TieredReservation" + lacks},
		{"a group kill on version 1", func(s *Settings) { s.SingleProcessOOMKill = "false" }, v1,
			"--single-process-oom-kill: false" + lacks},
		{"a single kill on version 1", func(s *Settings) { s.SingleProcessOOMKill = "true" }, v1, ""},
		{"no factor", func(s *Settings) { s.ThrottlingFactor = "2" }, v2,
			`--memory-throttling-factor: "2" must be a number above 0 and at most 1, like 0.9`},
	} {
		s := DefaultSettings()
		row.set(&s)
		got := ""
		if _, err := s.Rules(row.machine); err != nil {
			got = err.Error()
		}
		if got != row.want {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
}

// LimitedSwap needs a limit of swap only if there is swap.
func TestOnKernel(t *testing.T) {
	for _, row := range []struct {
		behavior string
		swap     int64
		limits   bool
		want     bool
	}{
		{limitedSwap, 1, true, true}, {limitedSwap, 1, false, false}, {limitedSwap, 0, false, true},
		{noSwap, 1, false, true}, {noSwap, 1, true, true},
	} {
		s := Settings{SwapBehavior: row.behavior, ReservationPolicy: reserveNone}
		r, err := s.Rules(Machine{CgroupV2: true, Memory: 8, Swap: row.swap})
		if err != nil {
			t.Fatal(err)
		}
		shares := row.behavior == limitedSwap && row.swap > 0
		if _, err := r.OnKernel(row.limits); (err == nil) != row.want || r.SharesSwap() != shares {
			t.Errorf("%+v: %v, shares %v", row, err, r.SharesSwap())
		}
	}
}
