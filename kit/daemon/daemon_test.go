package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

type options struct {
	name  string
	count int
	list  []string
}

func (o *options) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.name, "node-name", "default", "")
	fs.IntVar(&o.count, "max-pods", 1, "")
	fs.StringSliceVar(&o.list, "controllers", nil, "")
}

func (o *options) Validate() error {
	if o.count < 1 {
		return fmt.Errorf("--max-pods: %d must be above 0", o.count)
	}
	return nil
}

// execute runs a daemon that stops at once, unless run is given.
func execute(t *testing.T, o *options, run func(context.Context, *Environment) error, args ...string) (int, string) {
	t.Helper()
	if run == nil {
		run = func(context.Context, *Environment) error { return nil }
	}
	var stderr bytes.Buffer
	args = append([]string{"--status-address="}, args...)
	code := Execute(t.Context(), Daemon{Name: "test", Options: o, Run: run}, args, &stderr)
	return code, stderr.String()
}

func TestWrongUsageIsOneLineAndStatus2(t *testing.T) {
	config := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(config, []byte("max-podz: 3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"unknown flag":      {[]string{"--nope"}, "unknown flag: --nope"},
		"argument":          {[]string{"up"}, `unexpected argument "up"`},
		"value of own flag": {[]string{"--max-pods=0"}, "--max-pods: 0 must be above 0"},
		"no number":         {[]string{"--max-pods=x"}, `--max-pods: "x" is not a whole number`},
		"no boolean":        {[]string{"--profiling=maybe"}, `--profiling: "maybe" is not true or false`},
		"log level":         {[]string{"--log-level=loud"}, "allowed are debug, info, warn, error"},
		"memory limit":      {[]string{"--memory-soft-limit=67108863"}, "67108863 is neither 0 nor at least 64Mi"},
		"negative limit": {[]string{"--memory-soft-limit=-1"},
			"--memory-soft-limit: -1 is neither 0 nor at least 64Mi"},
		"no quantity": {[]string{"--memory-soft-limit=much"}, "quantities must match the regular expression"},
		"small heap": {[]string{"--gc-heap-target=16777215"},
			"--gc-heap-target: 16777215 is not at least 16Mi"},
		"too little garbage": {[]string{"--gc-percent=9"}, "--gc-percent: 9 is neither 0 nor from 10 to 1000"},
		"negative garbage":   {[]string{"--gc-percent=-1"}, "--gc-percent: -1 is neither 0 nor from 10 to 1000"},
		"too much garbage":   {[]string{"--gc-percent=1001"}, "--gc-percent: 1001 is neither 0 nor from 10 to 1000"},
		"missing file":       {[]string{"--config=/does/not/exist"}, "--config: open /does/not/exist"},
		"unknown file entry": {[]string{"--config=" + config}, `"max-podz" is no flag of this daemon`},
	} {
		t.Run(name, func(t *testing.T) {
			code, stderr := execute(t, &options{}, nil, test.args...)
			if code != 2 || !strings.Contains(stderr, test.want) || strings.Count(stderr, "\n") != 1 {
				t.Errorf("status %d, %q; want 2 and one line with %q", code, stderr, test.want)
			}
		})
	}
}

func TestBoundsOfMemoryAreTaken(t *testing.T) {
	percent, limit := debug.SetGCPercent(100), debug.SetMemoryLimit(-1)
	defer func() {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	}()
	for _, test := range []struct {
		args    []string
		percent int
		limit   int64
	}{
		{[]string{"--gc-percent=10", "--memory-soft-limit=64Mi"}, 10, 64 << 20},
		{[]string{"--gc-percent=1000", "--memory-soft-limit=9Gi"}, 1000, 9 << 30},
	} {
		run := func(context.Context, *Environment) error {
			asked, limit := debug.SetGCPercent(100), debug.SetMemoryLimit(-1)
			if asked != test.percent || limit < test.limit {
				t.Errorf("%v: %d %% and %d bytes", test.args, asked, limit)
			}
			return nil
		}
		if code, stderr := execute(t, &options{}, run, test.args...); code != 0 {
			t.Errorf("%v: status %d, %s", test.args, code, stderr)
		}
	}
}

func TestFailureWhileRunningIsStatus1(t *testing.T) {
	code, stderr := execute(t, &options{}, func(context.Context, *Environment) error { return errors.New("disk full") },
		"--log-level=error")
	if code != 1 || stderr != "keelson-test: disk full\n" {
		t.Errorf("status %d, %q", code, stderr)
	}
	code, _ = execute(t, &options{}, func(context.Context,
		*Environment) error {
		return UsageError(errors.New("bad file"))
	})
	if code != 2 {
		t.Errorf("a usage error found while running ends with %d", code)
	}
}

func TestCommandLineWinsOverEnvironmentOverFile(t *testing.T) {
	config := filepath.Join(t.TempDir(), "config.yaml")
	text := "node-name: file\nmax-pods: 3\ncontrollers: [a, b]\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KEELSON_CONFIG", config)
	t.Setenv("KEELSON_MAX_PODS", "4")
	o := &options{}
	if code, stderr := execute(t, o, nil, "--node-name=line"); code != 0 {
		t.Fatalf("status %d: %s", code, stderr)
	}
	if o.name != "line" || o.count != 4 || strings.Join(o.list, " ") != "a b" {
		t.Errorf("got %+v", *o)
	}
	t.Setenv("KEELSON_MAX_PODS", "many")
	if code, stderr := execute(t, &options{}, nil); code != 2 || !strings.Contains(stderr, "KEELSON_MAX_PODS") {
		t.Errorf("status %d, %q", code, stderr)
	}
}

func TestStatusAddressOutlivesTheWork(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var stderr bytes.Buffer
	code := Execute(ctx, Daemon{Name: "test", Options: &options{}, Run: func(ctx context.Context,
		_ *Environment) error {
		cancel()
		<-ctx.Done()
		address := regexp.MustCompile(`"statusAddress":"([^"]+)"`).FindStringSubmatch(stderr.String())
		if address == nil {
			t.Fatal("no status address")
		}
		connection, err := net.Dial("tcp", address[1])
		if err != nil {
			t.Fatalf("nobody listens any more: %v", err)
		}
		return connection.Close()
	}}, []string{}, &stderr)
	if code != 0 || !strings.Contains(stderr.String(), `"message":"stopped"`) {
		t.Errorf("status %d, %s", code, stderr.String())
	}
}
