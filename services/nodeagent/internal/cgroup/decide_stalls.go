package cgroup

import (
	"fmt"
	"strings"

	"github.com/opencontainers/cgroups"
)

// Stalls hold how long processes have waited for resources (the kernel's pressure stall information); nil for a
// resource that the kernel does not report.
type Stalls struct{ CPU, Memory, IO *Stall }

// Stall is how long processes have waited for one resource: Some of them, or all at once (Full).
type Stall struct{ Some, Full Waits }

// Waits are the shares of the last seconds, in percent, and the sum in microseconds.
type Waits struct {
	Avg10, Avg60, Avg300 float64
	Total                uint64
}

// ParseStall parses a file of /proc/pressure. Kernels before 5.13 do not report for how long all have waited for a
// CPU; it returns nil for what it cannot parse.
func ParseStall(text string) *Stall {
	var out Stall
	known := false
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		var kind string
		var w Waits
		if _, err := fmt.Sscanf(line, "%s avg10=%f avg60=%f avg300=%f total=%d", &kind, &w.Avg10, &w.Avg60, &w.Avg300,
			&w.Total); err != nil {
			return nil
		}
		switch kind {
		case "some":
			out.Some, known = w, true
		case "full":
			out.Full = w
		}
	}
	if !known {
		return nil
	}
	return &out
}

// stallOf converts what the library has read of a cgroup.
func stallOf(told *cgroups.PSIStats) *Stall {
	if told == nil {
		return nil
	}
	waits := func(d cgroups.PSIData) Waits {
		return Waits{Avg10: d.Avg10, Avg60: d.Avg60, Avg300: d.Avg300, Total: d.Total}
	}
	return &Stall{Some: waits(told.Some), Full: waits(told.Full)}
}
