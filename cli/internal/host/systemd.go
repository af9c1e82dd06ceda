package host

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// systemdRuns is there on every machine that systemd runs, and on no other.
const systemdRuns = "/run/systemd/system"

// systemctl is looked for where systemd installs it: keel does not depend on the PATH.
var systemctl = []string{"/usr/bin/systemctl", "/bin/systemctl"}

// CheckSystemd says whether systemd runs this machine.
func CheckSystemd() error {
	if !exists(systemdRuns) {
		return fmt.Errorf("systemd does not run this machine (there is no %s): leave the flag out", systemdRuns)
	}
	return nil
}

// StopUnit makes systemd forget a unit and all below it. One that it does not know is no error.
func StopUnit(name string) error {
	if !exists(systemdRuns) {
		return nil
	}
	for _, program := range systemctl {
		if !exists(program) {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		out, err := exec.CommandContext(ctx, program, "stop", name).CombinedOutput()
		if err != nil && !strings.Contains(string(out), "not loaded") {
			return fmt.Errorf("stopping the unit %s: %w: %s", name, err, strings.TrimSpace(string(out)))
		}
		return nil
	}
	return fmt.Errorf("stopping the unit %s: systemctl is not installed in %s", name, systemctl[0])
}
