package command

import (
	"context"
	"os/exec"
	"time"

	"github.com/spf13/cobra"
)

// Wait outlasts its command in five ways.
func Wait(c *cobra.Command) []context.Context {
	time.Sleep(time.Second)
	_ = exec.Command("sleep", "1").Run()
	ctx, background := c.Context(),
		context.Background()
	return []context.Context{context.WithoutCancel(ctx), background}
}
