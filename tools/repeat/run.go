package repeat

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// Options say what is repeated.
type Options struct {
	// Rounds is how often each test runs; round i has the seed First+i.
	Rounds int
	First  int64
	// Packages are patterns of the go command, Flags what it builds with.
	Packages, Flags []string
	// Load is set if all processors are kept busy meanwhile.
	Load bool
	// Target is what make is asked for in place of building and running the packages: it runs tests with the flags in
	// TESTFLAGS, and leaves their events in files that match one of the patterns Events.
	Target string
	Events []string
}

// binary is the built tests of a package.
type binary struct{ ImportPath, Dir, path string }

// Run repeats the tests in the working directory, says what it does, and returns what they came to.
func Run(o Options, say io.Writer) (*Outcomes, error) {
	folder, err := os.MkdirTemp("", "repeat")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	one := o.target
	if o.Target == "" {
		fmt.Fprintln(say, "==> building")
		tests, err := build(o, folder)
		if err != nil {
			return nil, err
		}
		one = func(seed int64, outcomes *Outcomes, say io.Writer) error { return round(tests, seed, outcomes, say) }
	}
	if o.Load {
		defer busy()()
	}
	outcomes := NewOutcomes()
	for i := range o.Rounds {
		seed := o.First + int64(i)
		fmt.Fprintf(say, "==> round %d of %d, seed %d\n", i+1, o.Rounds, seed)
		if err := one(seed, outcomes, say); err != nil {
			return nil, err
		}
	}
	return outcomes, nil
}

// target has make run the tests once. What fails is in the events.
func (o Options) target(seed int64, outcomes *Outcomes, say io.Writer) error {
	if err := o.eachFile(os.Remove); err != nil {
		return err
	}
	command := exec.Command("make", o.Target, fmt.Sprintf("TESTFLAGS=-count=1 -shuffle=%d", seed),
		fmt.Sprintf("RAPID_SEED=%d", seed))
	command.Stdout, command.Stderr = say, say
	if err := command.Run(); err != nil {
		fmt.Fprintf(say, "==> make %s: %v\n", o.Target, err)
	}
	seen := 0
	err := o.eachFile(func(path string) error {
		events, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		seen++
		if err := outcomes.Add(seed, bytes.NewReader(events)); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		return nil
	})
	if err == nil && seen == 0 {
		err = fmt.Errorf("make %s left no events in %s", o.Target, strings.Join(o.Events, ", "))
	}
	return errors.Join(err, outcomes.Print(say))
}

// eachFile does something with each file of events.
func (o Options) eachFile(do func(path string) error) error {
	for _, pattern := range o.Events {
		files, err := filepath.Glob(pattern)
		if err != nil {
			return fmt.Errorf("%s: %w", pattern, err)
		}
		for _, path := range files {
			if err := do(path); err != nil {
				return err
			}
		}
	}
	return nil
}

// build builds the tests of all packages that have any.
func build(o Options, folder string) ([]binary, error) {
	list, err := output("go", append([]string{
		"list",
		"-f",
		`{{if or .TestGoFiles .XTestGoFiles}}{"ImportPath": "{{.ImportPath}}", "Dir": "{{.Dir}}"}{{end}}`,
	}, o.Packages...)...)
	if err != nil {
		return nil, err
	}
	var tests []binary
	for from := json.NewDecoder(bytes.NewReader(list)); ; {
		var b binary
		switch err := from.Decode(&b); {
		case errors.Is(err, io.EOF):
			return tests, nil
		case err != nil:
			return nil, fmt.Errorf("reading the list of packages: %w", err)
		}
		b.path = filepath.Join(folder, strings.ReplaceAll(b.ImportPath, "/", "-")+".test")
		args := append(append([]string{"test", "-c", "-o", b.path}, o.Flags...), b.ImportPath)
		if _, err := output("go", args...); err != nil {
			return nil, err
		}
		tests = append(tests, b)
	}
}

// round runs all tests once, those of two packages at a time.
func round(tests []binary, seed int64, outcomes *Outcomes, say io.Writer) error {
	var mu sync.Mutex // guards outcomes, say and failed
	var failed error
	next := make(chan binary)
	var running sync.WaitGroup
	for range 2 {
		running.Go(func() {
			for b := range next {
				events, err := b.run(seed)
				mu.Lock()
				err = errors.Join(err, outcomes.Add(seed, bytes.NewReader(events)))
				failed = errors.Join(failed, err)
				mu.Unlock()
			}
		})
	}
	for _, b := range tests {
		next <- b
	}
	close(next)
	running.Wait()
	return errors.Join(failed, outcomes.Print(say))
}

// run runs the tests of a package in its folder and returns their events.
func (b binary) run(seed int64) ([]byte, error) {
	args := []string{"tool", "test2json", "-t", "-p", b.ImportPath, b.path, "-test.v=test2json",
		"-test.timeout=20m", "-test.shuffle", strconv.FormatInt(seed, 10)}
	command := exec.Command("go", args...)
	command.Dir = b.Dir
	command.Env = append(command.Environ(), fmt.Sprintf("RAPID_SEED=%d", seed))
	var complaint bytes.Buffer
	command.Stderr = &complaint
	events, err := command.Output()
	// What fails is in the events.
	if exit := (&exec.ExitError{}); err != nil && (!errors.As(err, &exit) || len(events) == 0) {
		return nil, fmt.Errorf("running the tests of %s: %w: %s", b.ImportPath, err, complaint.Bytes())
	}
	return events, nil
}

func output(program string, args ...string) ([]byte, error) {
	command := exec.Command(program, args...)
	var complaint bytes.Buffer
	command.Stderr = &complaint
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w: %s", program, strings.Join(args, " "), err, complaint.Bytes())
	}
	return out, nil
}

// busy keeps each processor busy until the function that it returns is called.
func busy() (stop func()) {
	var stopped atomic.Bool
	for range runtime.NumCPU() {
		go func() {
			for !stopped.Load() {
			}
		}()
	}
	return func() { stopped.Store(true) }
}
