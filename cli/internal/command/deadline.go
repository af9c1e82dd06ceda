package command

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// deadline limits the time of a whole command. No step has its own limit: each takes the context of run.
type deadline struct{ timeout time.Duration }

func (d *deadline) add(set *pflag.FlagSet, otherwise time.Duration, usage string) {
	set.DurationVar(&d.timeout, "timeout", otherwise, usage)
}

func (d *deadline) check() error {
	if d.timeout <= 0 {
		return usageError{fmt.Errorf("--timeout: %v must be greater than 0", d.timeout)}
	}
	return nil
}

// run makes the only context of the command. An error after the deadline says that the time was over.
func (d *deadline) run(c *cobra.Command, do func(context.Context) error) error {
	if err := d.check(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.Context(), d.timeout)
	defer cancel()
	err := do(ctx)
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("--timeout: not done after %v: %w", d.timeout, err)
	}
	return err
}
