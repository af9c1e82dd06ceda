// Package command has a command.
package command

import (
	"context"
	"time"

	"github.com/spf13/cobra"
)

// Run makes the context of a command.
func Run(c *cobra.Command, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(c.Context(), time.Minute)
	defer cancel()
	return do(ctx)
}
