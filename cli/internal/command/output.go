package command

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/pflag"
)

// outputFlag is the flag --output of commands that print a table for people, or JSON for programs.
type outputFlag string

const jsonOutput outputFlag = "json"

func (f *outputFlag) add(set *pflag.FlagSet) {
	set.StringVarP((*string)(f), "output", "o", "", "json for programs")
}

func (f outputFlag) check() error {
	if f != "" && f != jsonOutput {
		return usageError{fmt.Errorf("--output: %q must be json, or left out for a table", string(f))}
	}
	return nil
}

// shown is the result that such a command prints.
type shown interface {
	WriteJSON(out io.Writer) error
	WriteTable(out io.Writer, now time.Time)
}

func (f outputFlag) write(out io.Writer, what shown, now time.Time) error {
	if f == jsonOutput {
		return what.WriteJSON(out)
	}
	what.WriteTable(out, now)
	return nil
}
