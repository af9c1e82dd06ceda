package mesh

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"keelson.dev/cli/internal/programs"
	"keelson.dev/cli/internal/upgrade"
)

// TakenBackError says that a daemon did not become ready, and that the one from before runs again.
type TakenBackError struct {
	Daemon, From, To string
	Problem          string
}

// Error returns a text whose first line is the whole story.
func (e *TakenBackError) Error() string {
	return fmt.Sprintf("%s: %s runs again, since %s was taken back: %s", e.Daemon, e.From, e.To, e.Problem)
}

// replace carries out the steps of a daemon's replacement.
func (u *upgrading) replace(ctx context.Context, d *replaceable) error {
	var done upgrade.Input // what this run has done
	d.log = u.logFrom(d.unit.Name)
	for {
		if ctx.Err() != nil {
			return fmt.Errorf("%s: cut off, and keel upgrade again goes on: %w", d.name, context.Cause(ctx))
		}
		in, err := u.observe(ctx, d)
		if err != nil {
			return err
		}
		in.Restarted, in.Readiness, in.Problem = done.Restarted, done.Readiness, done.Problem
		step := upgrade.Decide(in)
		switch step.Action {
		case upgrade.Rest:
			return nil
		case upgrade.Fail:
			return u.failed(in)
		case upgrade.Write:
			if err := u.save(d, step.Record); err != nil {
				return err
			}
			if step.Record.Ended() {
				return u.end(d)
			}
			done = upgrade.Input{}
		case upgrade.Restart, upgrade.Await:
			u.getReady(ctx, d, in, step, &done)
		default:
			if err := u.move(ctx, d, in, step); err != nil {
				return err
			}
		}
	}
}

// move carries out a step with files.
func (u *upgrading) move(ctx context.Context, d *replaceable, in upgrade.Input, step upgrade.Step) error {
	build := step.Build
	switch step.Action {
	case upgrade.Keep:
		return u.step(ctx, fmt.Sprintf("%s: keeping %s", d.name, named(build)), func(ctx context.Context) error {
			if err := os.MkdirAll(d.kept.Dir, 0o700); err != nil {
				return fmt.Errorf("making a folder for what is kept: %w", err)
			}
			from, err := u.present(ctx, d, in, build)
			if err != nil {
				return err
			}
			return programs.Copy(from, d.kept.Path(build.Sum), build.Sum)
		})
	case upgrade.Stage:
		return u.step(ctx, fmt.Sprintf("%s: copying %s to %s", d.name, named(build), d.folder()),
			func(context.Context) error {
				from := d.source
				if slices.Contains(in.Kept, build.Sum) {
					from = d.kept.Path(build.Sum)
				}
				return programs.Copy(from, d.staged.Path(build.Sum), build.Sum)
			})
	}
	return u.step(ctx, fmt.Sprintf("%s: putting %s in its place", d.name, named(build)), func(context.Context) error {
		return programs.Move(d.staged.Path(build.Sum), d.unit.Path)
	})
}

// named returns the version of a build as it is said in sentences.
func named(build upgrade.Build) string { return upgrade.ParseVersion(build.Version).String() }

// present returns where a build is that is installed or runs.
func (u *upgrading) present(ctx context.Context, d *replaceable, in upgrade.Input, build upgrade.Build,
) (string, error) {
	if in.Installed.Sum == build.Sum {
		return d.unit.Path, nil
	}
	pid, err := u.pid(ctx, d)
	return u.units().Program(pid), err
}

// getReady starts a daemon or waits until it is ready, and notes what comes of it.
func (u *upgrading) getReady(ctx context.Context, d *replaceable, in upgrade.Input, step upgrade.Step,
	done *upgrade.Input) {
	var err error
	if step.Action == upgrade.Restart {
		done.Restarted = true
		err = u.restart(ctx, d, in.Running, step.Build)
	} else {
		err = u.step(ctx, fmt.Sprintf("%s: waiting until %s is ready", d.name, named(step.Build)),
			func(ctx context.Context) error { return u.await(ctx, d, step.Build) })
	}
	switch {
	case ctx.Err() != nil: // that says nothing about the daemon
	case err != nil:
		done.Readiness, done.Problem = upgrade.Unready, err.Error()
		u.say("    %v", err)
		if last := d.log.last(ctx); len(last) > 0 {
			u.say("    It said last:\n%s", indent(last))
		}
	case step.Action == upgrade.Await:
		done.Readiness = upgrade.Ready
	}
}

// restart has a daemon come to its end in good order, and starts another build of it.
func (u *upgrading) restart(ctx context.Context, d *replaceable, old, build upgrade.Build) error {
	what := fmt.Sprintf("%s: starting %s", d.name, named(build))
	if old.Sum != "" {
		what = fmt.Sprintf("%s: ending %s in good order, and starting %s", d.name, named(old), named(build))
	}
	return u.step(ctx, what, func(ctx context.Context) error {
		d.log = u.logFrom(d.unit.Name)
		return u.units().Restart(ctx, d.unit.Name)
	})
}

// await waits until a daemon is ready, and sees that it stays so for a moment.
func (u *upgrading) await(ctx context.Context, d *replaceable, build upgrade.Build) error {
	ctx, cancel := context.WithTimeout(ctx, u.Within)
	defer cancel()
	client, err := u.httpClient()
	if err != nil {
		return err
	}
	if err := u.awaitUnit(ctx, client, d.unit); err != nil {
		return err
	}
	before, err := u.pid(ctx, d)
	if err != nil {
		return err
	}
	if d.name == upgrade.Nodeagent && u.Network().PodsStart {
		if err := u.around.awaitNode(ctx, build.Version); err != nil {
			return err
		}
	}
	select {
	case <-ctx.Done():
		return fmt.Errorf("%s is not ready in time: %w", d.unit.Name, ctx.Err())
	case <-time.After(u.steady):
	}
	after, err := u.pid(ctx, d)
	if err == nil && after != before {
		err = fmt.Errorf("%s has ended just after it was ready: %s says why", d.unit.Name, u.units().Log(d.unit.Name))
	}
	return err
}

// end tidies up after a replacement, and says how it has ended.
func (u *upgrading) end(d *replaceable) error {
	record := d.record
	if err := errors.Join(d.kept.Clear(record.From.Sum), d.staged.Clear("")); err != nil {
		return err
	}
	if record.Phase == upgrade.Returned || u.Back {
		u.sayPackage(d)
	}
	if record.Phase == upgrade.Returned && record.From.Sum != d.wanted.Sum {
		return &TakenBackError{Daemon: d.name, From: named(record.From), To: named(record.To), Problem: record.Problem}
	}
	return nil
}

// failed returns the error of a daemon for which nothing more can be done.
func (u *upgrading) failed(in upgrade.Input) error {
	record := in.Record
	if record.Phase == upgrade.Returning {
		return fmt.Errorf("neither %s nor %s, which is there again, becomes ready: %s; keel upgrade again goes on to "+
			"wait for it", named(record.To), named(record.From), in.Problem)
	}
	return fmt.Errorf("%s does not become ready, and nothing from before is kept: %s", named(record.To), in.Problem)
}
