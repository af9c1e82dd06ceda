package upgrade

import "slices"

// Build is a program of a daemon. The zero Build is none.
type Build struct {
	Version string `json:"version"`
	// Sum is the SHA-256 of the file, in hex. It alone tells builds apart.
	Sum string `json:"sum"`
}

// Phase is how far a replacement is, as it is recorded on disk.
type Phase string

const (
	// Idle is before the first replacement.
	Idle Phase = ""
	// Going is a replacement under way: From is kept, and To takes its place.
	Going Phase = "going"
	// Returning is one that is taken back: To has not become ready, or is not wanted any more.
	Returning Phase = "returning"
	// Done is one that is complete: To was ready. From is kept.
	Done Phase = "done"
	// Returned is one that was taken back: From was ready again. It is kept.
	Returned Phase = "returned"
)

// Record is what a daemon's last replacement was about. It is written before what it describes is begun.
type Record struct {
	Phase Phase `json:"phase"`
	// From is what can be gone back to; none if there was nothing good.
	From Build `json:"from"`
	To   Build `json:"to"`
	// Problem says why a replacement was taken back.
	Problem string `json:"problem,omitempty"`
}

// Ended reports whether the replacement is complete, in one way or the other.
func (r Record) Ended() bool { return r.Phase == Done || r.Phase == Returned }

// Readiness is what is known about the daemon since it was started by this run.
type Readiness string

const (
	// Unknown is before somebody has waited for it.
	Unknown Readiness = ""
	// Ready is a daemon that has said so.
	Ready Readiness = "ready"
	// Unready is one that could not be started, or has not become ready in time.
	Unready Readiness = "unready"
)

// Input is what a step is decided from: what lies on the disk, what runs, and what is wanted.
type Input struct {
	Record Record
	// Installed is the program that the next start of the daemon runs, Running the one that runs.
	Installed, Running Build
	// Kept are the sums of the programs that are kept, Staged those of the ones that lie beside the installed one and
	// only need to be moved.
	Kept, Staged []string
	// Wanted is the build to go to.
	Wanted Build
	// Restarted is set once this run has started the daemon from what is installed. Readiness is what came of it, and
	// Problem the reason if it is Unready.
	Restarted bool
	Readiness Readiness
	Problem   string
}

// Action is the kind of a step. Each may be cut off at any instruction, and is then decided upon again.
type Action string

const (
	// Rest is nothing: the wanted build runs.
	Rest Action = "rest"
	// Keep copies Build, which is installed or runs, to where it is kept.
	Keep Action = "keep"
	// Stage copies Build, which is kept or comes from outside, beside the installed program.
	Stage Action = "stage"
	// Write writes Record.
	Write Action = "write"
	// Switch moves the staged Build to where the daemon is started from.
	Switch Action = "switch"
	// Restart ends the daemon, if it runs, and starts it from Build.
	Restart Action = "restart"
	// Await waits until the daemon is ready.
	Await Action = "await"
	// Fail is the end of a run that can do nothing more: the daemon is not ready, and there is nothing to go back to.
	Fail Action = "fail"
)

// Step is what is to be done next.
type Step struct {
	Action Action
	Build  Build
	Record Record
}

// Decide returns the next step of a daemon's replacement. It depends on what lies on the disk and runs, so it makes no
// difference where an earlier run was cut off, and whether the machine was started anew since.
func Decide(in Input) Step {
	record := in.Record
	switch record.Phase {
	case Returning:
		return in.bring(record.From, Record{Phase: Returned, From: record.From, To: record.To, Problem: record.Problem})
	case Going:
		switch in.Wanted.Sum {
		case record.To.Sum:
			return in.bring(record.To, Record{Phase: Done, From: record.From, To: record.To})
		case record.From.Sum:
			return Step{Action: Write, Record: Record{Phase: Returning, From: record.From, To: record.To,
				Problem: "it was asked for"}}
		}
		// What was good before the replacement under way stays what can be gone back to.
		return in.begin(record.From)
	}
	if in.Installed.Sum == in.Wanted.Sum && in.Running.Sum == in.Wanted.Sum {
		return Step{Action: Rest}
	}
	return in.begin(in.good())
}

// Begun reports whether a replacement is under way that comes to its end, in one way or the other, before anything
// else.
func (in Input) Begun() bool {
	switch in.Record.Phase {
	case Returning:
		return true
	case Going:
		return in.Wanted.Sum == in.Record.To.Sum || in.Wanted.Sum == in.Record.From.Sum
	}
	return false
}

// Ends returns the builds between which the daemon goes from now on.
func (in Input) Ends() (from, to Build) {
	record := in.Record
	switch {
	case record.Phase == Returning, record.Phase == Going && in.Wanted.Sum == record.From.Sum:
		return record.To, record.From
	case record.Phase == Going:
		return record.From, in.Wanted
	case in.Running.Sum != "":
		return in.Running, in.Wanted
	}
	return in.Installed, in.Wanted
}

// good returns the build that can be gone back to: the one that runs, or else the one that is installed.
func (in Input) good() Build {
	for _, build := range []Build{in.Running, in.Installed} {
		if build.Sum != "" && build.Sum != in.Wanted.Sum {
			return build
		}
	}
	return Build{}
}

// begin prepares a replacement and records it.
func (in Input) begin(from Build) Step {
	switch {
	case from.Sum != "" && !slices.Contains(in.Kept, from.Sum):
		return Step{Action: Keep, Build: from}
	case in.Installed.Sum != in.Wanted.Sum && !slices.Contains(in.Staged, in.Wanted.Sum):
		return Step{Action: Stage, Build: in.Wanted}
	}
	return Step{Action: Write, Record: Record{Phase: Going, From: from, To: in.Wanted}}
}

// bring has a build run, and records in the end that it does.
func (in Input) bring(build Build, end Record) Step {
	switch {
	case in.Installed.Sum != build.Sum && !slices.Contains(in.Staged, build.Sum):
		return Step{Action: Stage, Build: build}
	case in.Installed.Sum != build.Sum:
		return Step{Action: Switch, Build: build}
	case in.Readiness == Ready:
		return Step{Action: Write, Record: end}
	case in.Readiness == Unready:
		return in.giveUp(end)
	case in.Running.Sum != build.Sum && !in.Restarted:
		return Step{Action: Restart, Build: build}
	}
	return Step{Action: Await, Build: build}
}

// giveUp goes back, unless that is what has failed.
func (in Input) giveUp(end Record) Step {
	if end.Phase == Returned || end.From.Sum == "" {
		return Step{Action: Fail}
	}
	return Step{Action: Write, Record: Record{Phase: Returning, From: end.From, To: end.To, Problem: in.Problem}}
}
