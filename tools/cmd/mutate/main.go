// Command mutate breaks the decisions of modules in small ways and prints how much of it their tests notice.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"keelson.dev/tools/mutate"
)

// maxMemory limits the memory that a broken program may use before it fails.
const maxMemory = 4 << 30

func main() {
	root := flag.String("root", ".", "the repository")
	gremlins := flag.String("gremlins", "gremlins", "the program gremlins")
	only := flag.String("package", "", "the only folder of the module to break, for example internal/queue")
	workers := flag.Int("workers", 2, "how many mutants are tested at the same time")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: mutate [flags] MODULE...")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() == 0 {
		flag.Usage()
		os.Exit(2)
	}
	limit := syscall.Rlimit{Cur: maxMemory, Max: maxMemory}
	if err := syscall.Setrlimit(syscall.RLIMIT_DATA, &limit); err != nil {
		fmt.Fprintln(os.Stderr, "mutate: bounding the memory:", err)
		os.Exit(1)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	for _, module := range flag.Args() {
		r := mutate.Runner{Root: *root, Module: module, Gremlins: *gremlins, Workers: *workers, Progress: os.Stderr}
		if err := run(ctx, r, strings.TrimSuffix(*only, "/")); err != nil {
			fmt.Fprintln(os.Stderr, "mutate:", err)
			os.Exit(1)
		}
	}
}

func run(ctx context.Context, r mutate.Runner, only string) error {
	packages, err := mutate.Decisions(os.DirFS(r.Root), r.Module)
	if err != nil {
		return err
	}
	if only != "" {
		packages = slices.DeleteFunc(packages, func(p mutate.Package) bool { return p.Dir != only })
		if len(packages) == 0 {
			return fmt.Errorf("%s/%s is not among the decisions that .golangci.yml lists", r.Module, only)
		}
	}
	if len(packages) == 0 {
		return nil
	}
	remove, err := r.Prepare()
	if err != nil {
		return err
	}
	defer remove()
	var outcomes []mutate.Outcome
	for _, p := range packages {
		outcome, err := r.Run(ctx, p)
		if err != nil {
			return err
		}
		outcomes = append(outcomes, outcome)
	}
	fmt.Printf("%s\n", r.Module)
	mutate.Write(os.Stdout, outcomes)
	return nil
}
