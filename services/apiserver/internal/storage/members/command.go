package members

import (
	"context"
	"encoding/json"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"keelson.dev/kit/daemon"
	"keelson.dev/services/apiserver/internal/storage/storedir"
)

// Commands are those of `keel store` about members.
func Commands() []*cobra.Command {
	return []*cobra.Command{newMembers(), newRemove(), newLeave(), newRetire()}
}

func addDataDir(fs *pflag.FlagSet, dir *string) {
	fs.StringVar(dir, "data-dir", "/var/lib/keelson/apiserver", "the apiserver's")
	_ = fs.MarkHidden("data-dir")
}

func none(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return daemon.UsageError(fmt.Errorf("unexpected argument %q", args[0]))
	}
	return nil
}

func newMembers() *cobra.Command {
	dir, output := "", ""
	command := &cobra.Command{
		Use: "members", Short: "show which machines have the store", Args: none,
		RunE: func(c *cobra.Command, _ []string) error {
			if output != "" && output != "json" {
				return daemon.UsageError(fmt.Errorf("--output: %q must be json, or left out for text", output))
			}
			all, err := listOf(c.Context(), dir)
			if err != nil {
				return err
			}
			if output == "json" {
				return json.NewEncoder(c.OutOrStdout()).Encode(all)
			}
			table := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 3, ' ', 0)
			fmt.Fprintln(table, "ADDRESS\tCOUNTS\tID")
			for _, m := range all {
				fmt.Fprintf(table, "%s\t%s\t%x\n", m.Address, counts(m), m.ID)
			}
			return table.Flush()
		},
	}
	addDataDir(command.Flags(), &dir)
	command.Flags().StringVarP(&output, "output", "o", "", "json for programs")
	return command
}

func counts(m Member) string {
	text := "catching up"
	if m.Counts {
		text = "yes"
	}
	if m.Self {
		text += ", this machine"
	}
	return text
}

func listOf(ctx context.Context, dataDir string) ([]Member, error) {
	socket, err := connect(ctx, dataDir)
	if err != nil {
		return nil, err
	}
	defer socket.Close()
	return list(ctx, socket)
}

func newRemove() *cobra.Command {
	dir := ""
	command := &cobra.Command{
		Use: "remove-member ADDRESS", Short: "take a machine that will not come back out of those that have the store",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return daemon.UsageError(fmt.Errorf("ADDRESS is missing: %s", c.UseLine()))
			}
			return none(c, args[1:])
		},
		RunE: func(c *cobra.Command, args []string) error {
			socket, err := connect(c.Context(), dir)
			if err != nil {
				return err
			}
			defer socket.Close()
			all, err := list(c.Context(), socket)
			if err != nil {
				return err
			}
			chosen, err := decideRemove(all, args[0])
			if err != nil {
				return daemon.UsageError(err)
			}
			if err := remove(c.Context(), socket, chosen.ID); err != nil {
				return err
			}
			fmt.Fprintf(c.OutOrStdout(), "%s has the store no more\n", chosen.Address)
			return nil
		},
	}
	addDataDir(command.Flags(), &dir)
	return command
}

// newLeave and newRetire are for keel reset: the first before the apiserver is stopped, the second after.
func newLeave() *cobra.Command {
	dir := ""
	command := &cobra.Command{
		Use: "leave", Hidden: true, Args: none, Short: "take this machine out of those that have the store",
		RunE: func(c *cobra.Command, _ []string) error {
			done, err := leave(c.Context(), dir)
			if err != nil {
				return err
			}
			return json.NewEncoder(c.OutOrStdout()).Encode(done)
		},
	}
	addDataDir(command.Flags(), &dir)
	return command
}

func newRetire() *cobra.Command {
	dir := ""
	command := &cobra.Command{
		Use: "retire", Hidden: true, Args: none, Short: "put a store aside that has left the others",
		RunE: func(c *cobra.Command, _ []string) error {
			aside, err := storedir.Retire(storedir.Of(dir), time.Now())
			if err == nil && aside != "" {
				fmt.Fprintln(c.OutOrStdout(), aside)
			}
			return err
		},
	}
	addDataDir(command.Flags(), &dir)
	return command
}
