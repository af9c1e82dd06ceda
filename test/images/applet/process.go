package applet

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func succeed([]string, Streams) error { return nil }

func fail([]string, Streams) error { return status(1) }

func exit(args []string, _ Streams) error {
	if len(args) == 0 {
		return nil
	}
	code, err := strconv.Atoi(args[0])
	if err != nil || code < 0 || code > 255 {
		return fmt.Errorf("exit status %q is not between 0 and 255", args[0])
	}
	if code == 0 {
		return nil
	}
	return status(code)
}

func sleep(args []string, _ Streams) error {
	if len(args) != 1 {
		return errors.New("usage: sleep SECONDS|DURATION|infinity")
	}
	if args[0] == "infinity" {
		time.Sleep(math.MaxInt64) // an empty select would count as a deadlock of a program that does nothing else
	}
	wait, err := time.ParseDuration(args[0])
	if seconds, asNumber := strconv.ParseFloat(args[0], 64); asNumber == nil {
		wait, err = time.Duration(seconds*float64(time.Second)), nil
	}
	if err != nil || wait < 0 {
		return fmt.Errorf("%q is not a duration", args[0])
	}
	time.Sleep(wait)
	return nil
}

// date prints the time in UTC: seconds since 1970 for +%s, with nanoseconds for +%s%N, RFC 3339 otherwise.
func date(args []string, s Streams) error {
	now := time.Now()
	switch strings.Join(args, " ") {
	case "+%s":
		fmt.Fprintln(s.Out, now.Unix())
	case "+%s%N":
		fmt.Fprintln(s.Out, now.UnixNano())
	default:
		fmt.Fprintln(s.Out, now.UTC().Format(time.RFC3339Nano))
	}
	return nil
}

// env prints the environment, or runs a command with some of it changed.
func env(args []string, s Streams) error {
	environment := os.Environ()
	for len(args) > 0 && strings.Contains(args[0], "=") {
		environment, args = append(environment, args[0]), args[1:]
	}
	if len(args) == 0 {
		for _, variable := range environment {
			fmt.Fprintln(s.Out, variable)
		}
		return nil
	}
	command := exec.Command(args[0], args[1:]...)
	command.Env, command.Stdin, command.Stdout, command.Stderr = environment, s.In, s.Out, s.Err
	err := command.Run()
	var exited *exec.ExitError
	if errors.As(err, &exited) {
		return status(exited.ExitCode())
	}
	return err
}

func hostname(args []string, s Streams) error {
	name, err := os.Hostname()
	if err != nil {
		return err
	}
	if len(args) > 0 && args[0] == "-f" {
		name = qualified(name)
	}
	fmt.Fprintln(s.Out, name)
	return nil
}

// qualified looks the host's own name up where the kubelet writes it.
func qualified(name string) string {
	hosts, err := os.ReadFile("/etc/hosts")
	if err != nil {
		return name
	}
	for line := range strings.Lines(string(hosts)) {
		if names := strings.Fields(line); len(names) > 2 && slices.Contains(names[2:], name) {
			return names[1]
		}
	}
	return name
}

func pwd(_ []string, s Streams) error {
	dir, err := os.Getwd()
	fmt.Fprintln(s.Out, dir)
	return err
}

func id(args []string, s Streams) error {
	set, _, err := options(args, "ugG", "")
	if err != nil {
		return err
	}
	groups, err := os.Getgroups()
	if err != nil {
		return err
	}
	if len(groups) == 0 {
		groups = []int{os.Getgid()}
	}
	names := make([]string, len(groups))
	for i, group := range groups {
		names[i] = strconv.Itoa(group)
	}
	switch {
	case set['u'] != "":
		fmt.Fprintln(s.Out, os.Getuid())
	case set['g'] != "":
		fmt.Fprintln(s.Out, os.Getgid())
	case set['G'] != "":
		fmt.Fprintln(s.Out, strings.Join(names, " "))
	default:
		fmt.Fprintf(s.Out, "uid=%d gid=%d groups=%s\n", os.Getuid(), os.Getgid(), strings.Join(names, ","))
	}
	return nil
}

var signals = map[string]syscall.Signal{
	"HUP": syscall.SIGHUP, "INT": syscall.SIGINT, "QUIT": syscall.SIGQUIT, "KILL": syscall.SIGKILL,
	"USR1": syscall.SIGUSR1,
	"USR2": syscall.SIGUSR2, "TERM": syscall.SIGTERM, "CONT": syscall.SIGCONT, "STOP": syscall.SIGSTOP,
}

func kill(args []string, _ Streams) error {
	signal := syscall.SIGTERM
	if len(args) > 0 && strings.HasPrefix(args[0], "-") {
		name := strings.TrimPrefix(args[0][1:], "SIG")
		number, err := strconv.Atoi(name)
		named, known := signals[name]
		switch {
		case known:
			signal = named
		case err == nil:
			signal = syscall.Signal(number)
		default:
			return fmt.Errorf("unknown signal %q", name)
		}
		args = args[1:]
	}
	var failed error
	for _, arg := range args {
		pid, err := strconv.Atoi(arg)
		if err != nil {
			return fmt.Errorf("%q is not a process id", arg)
		}
		failed = errors.Join(failed, syscall.Kill(pid, signal))
	}
	return failed
}

func ps(_ []string, s Streams) error {
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return err
	}
	fmt.Fprintln(s.Out, "PID COMMAND")
	for _, process := range processes {
		line, err := os.ReadFile(filepath.Join(process, "cmdline"))
		if err != nil {
			continue // it has ended
		}
		fmt.Fprintln(s.Out, filepath.Base(process), strings.TrimSpace(strings.ReplaceAll(string(line), "\x00", " ")))
	}
	return nil
}

// wget prints what a URL answers; -T is the time limit in seconds. Statuses from 400 mean failure.
func wget(args []string, s Streams) error {
	set, args, err := options(args, "q", "OT")
	if err != nil {
		return err
	}
	if len(args) != 1 || (set['O'] != "" && set['O'] != "-") {
		return errors.New("usage: wget [-q] [-T SECONDS] -O- URL")
	}
	timeout := 10
	if set['T'] != "" {
		if timeout, err = strconv.Atoi(set['T']); err != nil {
			return fmt.Errorf("%q is not a number of seconds", set['T'])
		}
	}
	client := http.Client{Timeout: time.Duration(timeout) * time.Second}
	answer, err := client.Get(args[0])
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if _, err := io.Copy(s.Out, answer.Body); err != nil {
		return err
	}
	if answer.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("server returned %s", answer.Status)
	}
	return nil
}
