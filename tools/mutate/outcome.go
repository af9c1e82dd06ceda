package mutate

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Outcome is what became of the mutants of one package.
type Outcome struct {
	Dir string
	// Killed mutants made a test fail, TimedOut ones made the tests run for ever, which is noticed as well.
	Killed, TimedOut int
	// Survivors are "file:line:column kind" of those that no test noticed.
	Survivors []string
}

// Rate is the share of the mutants that were noticed, in percent; 100 where there was nothing to break.
func (o Outcome) Rate() float64 {
	noticed := o.Killed + o.TimedOut
	all := noticed + len(o.Survivors)
	if all == 0 {
		return 100
	}
	return 100 * float64(noticed) / float64(all)
}

// result is the part of the report of gremlins that is read.
type result struct {
	Files []struct {
		Name      string `json:"file_name"`
		Mutations []struct {
			Type, Status string
			Line, Column int
		}
	}
}

// read sums up the report of one package; one without mutants has none.
func read(dir string, report []byte) (Outcome, error) {
	out := Outcome{Dir: dir}
	if len(report) == 0 {
		return out, nil
	}
	var r result
	if err := json.Unmarshal(report, &r); err != nil {
		return out, fmt.Errorf("reading the report on %s: %w", dir, err)
	}
	for _, file := range r.Files {
		for _, m := range file.Mutations {
			at := fmt.Sprintf("%s/%s:%d:%d %s", dir, file.Name, m.Line, m.Column, strings.ToLower(m.Type))
			switch m.Status {
			case "KILLED":
				out.Killed++
			case "TIMED OUT":
				out.TimedOut++
			case "LIVED":
				out.Survivors = append(out.Survivors, at)
			case "NOT VIABLE":
			default:
				return out, fmt.Errorf("reading the report on %s: unknown status %q", at, m.Status)
			}
		}
	}
	slices.Sort(out.Survivors)
	return out, nil
}

// Write prints who survived, then one line for each package and the sum.
func Write(out io.Writer, outcomes []Outcome) {
	var sum Outcome
	for _, o := range outcomes {
		for _, at := range o.Survivors {
			fmt.Fprintln(out, "survived", at)
		}
		sum.Killed, sum.TimedOut = sum.Killed+o.Killed, sum.TimedOut+o.TimedOut
		sum.Survivors = append(sum.Survivors, o.Survivors...)
	}
	sum.Dir = "all"
	fmt.Fprintf(out, "\n%-48s %7s %7s %9s %7s\n", "package", "killed", "hung", "survived", "rate")
	for _, o := range append(slices.Clone(outcomes), sum) {
		fmt.Fprintf(out, "%-48s %7d %7d %9d %6.1f%%\n", o.Dir, o.Killed, o.TimedOut, len(o.Survivors), o.Rate())
	}
}
