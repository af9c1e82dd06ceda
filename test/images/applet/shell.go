package applet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"
)

// sh runs a script: sh -c SCRIPT [NAME ARG...], sh FILE [ARG...], or from the standard input.
func sh(args []string, s Streams) error {
	set, rest, err := options(args, "eux", "c")
	if err != nil {
		return err
	}
	name, whole, script := "sh", true, s.In
	switch {
	case set['c'] != "":
		script = strings.NewReader(set['c'])
		if len(rest) > 0 {
			name, rest = rest[0], rest[1:]
		}
	case len(rest) > 0:
		file, err := os.Open(rest[0])
		if err != nil {
			return err
		}
		defer file.Close()
		name, script, rest = rest[0], file, rest[1:]
	default:
		whole = false
	}
	runner, err := interp.New(interp.StdIO(commandInput(s.In, whole), s.Out, s.Err),
		interp.Params(shellParams(set, rest)...),
		interp.ExecHandlers(func(interp.ExecHandlerFunc) interp.ExecHandlerFunc {
			return interp.DefaultExecHandler(
				2 * time.Second)
		}))
	if err != nil {
		return fmt.Errorf("setting the shell up: %w", err)
	}
	parser := syntax.NewParser(syntax.Variant(syntax.LangPOSIX))
	if !whole {
		return runEach(runner, parser, script)
	}
	program, err := parser.Parse(script, name)
	if err != nil {
		return err
	}
	return shellStatus(runner.Run(context.Background(), program))
}

// commandInput is what the script's commands read. The interpreter copies a reader that is no file in the background,
// which would take the script itself away from the parser.
func commandInput(in io.Reader, separate bool) io.Reader {
	if _, isFile := in.(*os.File); isFile || separate {
		return in
	}
	return nil
}

func shellParams(set map[rune]string, rest []string) []string {
	var params []string
	for _, flag := range "eux" {
		if set[flag] != "" {
			params = append(params, "-"+string(flag))
		}
	}
	return append(append(params, "--"), rest...)
}

// runEach runs statement by statement, so that a terminal session sees each answer before its next line.
func runEach(runner *interp.Runner, parser *syntax.Parser, script io.Reader) error {
	var result error
	for statement, err := range parser.StmtsSeq(script) {
		if err != nil {
			return err
		}
		if result = runner.Run(context.Background(), statement); runner.Exited() {
			break
		}
	}
	return shellStatus(result)
}

func shellStatus(result error) error {
	var exited interp.ExitStatus
	if errors.As(result, &exited) {
		return status(exited)
	}
	return result
}
