package containerlog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"keelson.dev/services/nodeagent/internal/plainfile"
	"keelson.dev/services/nodeagent/internal/plainfile/plainfiletest"
)

const stamp = "2026-01-31T10:00:00.000000001Z"

func entry(second int, stream Stream, tag, text string) string {
	at := time.Date(2026, 1, 31, 10, 0, second, 1, time.UTC)
	return at.Format(time.RFC3339Nano) + " " + string(stream) + " " + tag + " " + text + "\n"
}

// sample returns a log in which the lines of both streams alternate and one is written in parts.
func sample() string {
	return entry(0, Stdout, "F", "one") + entry(1, Stderr, "F", "oops") + entry(2, Stdout, "P", "tw") + entry(2, Stdout,
		"F", "o") +
		"rubbish\n" + entry(3, Stdout, "F", "") + entry(4, Stdout, "F:x", "four")
}

func logFile(t testing.TB, contents string) string {
	path := filepath.Join(t.TempDir(), "0.log")
	if err := os.WriteFile(path, []byte(contents), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// logAt returns the log at a path in a test's folder.
func logAt(path string) Log { return Log{Root: plainfile.Root(filepath.Dir(path)), Path: path} }

func with(change func(*Options)) Options {
	options := All
	change(&options)
	return options
}

// POD-106, POD-224
func TestRead(t *testing.T) {
	path := logFile(t, sample())
	for name, row := range map[string]struct {
		options Options
		want    string
	}{
		"all":                      {All, "one\noops\ntwo\n\nfour\n"},
		"no lines":                 {with(func(o *Options) { o.Tail = 0 }), ""},
		"last line":                {with(func(o *Options) { o.Tail = 1 }), "four\n"},
		"last three, one in parts": {with(func(o *Options) { o.Tail = 4 }), "two\n\nfour\n"},
		"more than there are":      {with(func(o *Options) { o.Tail = 100 }), "one\noops\ntwo\n\nfour\n"},
		"since": {with(func(o *Options) { o.Since = time.Date(2026, 1, 31, 10, 0, 3, 0, time.UTC) }),
			"\nfour\n"},
		"limit":      {with(func(o *Options) { o.Limit = 6 }), "one\noo"},
		"limit 0":    {with(func(o *Options) { o.Limit = 0 }), ""},
		"one stream": {with(func(o *Options) { o.Only = Stderr }), "oops\n"},
		"times": {with(func(o *Options) { o.Timestamps, o.Tail = true, 4 }),
			"2026-01-31T10:00:02.000000001Z two\n2026-01-31T10:00:03.000000001Z \n2026-01-31T10:00:04.000000001Z " +
				"four\n"},
	} {
		var out bytes.Buffer
		if err := Read(t.Context(), logAt(path), row.options, nil, Writers{&out, &out}); err != nil ||
			out.String() != row.want {
			t.Errorf("%s: %q, %v; want %q", name, out.String(), err, row.want)
		}
	}
}

func TestReadWithoutAFile(t *testing.T) {
	var out bytes.Buffer
	if err := Read(t.Context(), logAt(filepath.Join(t.TempDir(), "none")), All, nil, Writers{&out, &out}); err != nil ||
		out.Len() != 0 {
		t.Errorf("%q, %v", out.String(), err)
	}
}

func TestReadSplitsStreams(t *testing.T) {
	var stdout, stderr bytes.Buffer
	if err := Read(t.Context(), logAt(logFile(t, sample())), All, nil, Writers{&stdout, &stderr}); err != nil {
		t.Fatal(err)
	}
	if stdout.String() != "one\ntwo\n\nfour\n" || stderr.String() != "oops\n" {
		t.Errorf("%q, %q", stdout.String(), stderr.String())
	}
}

// POD-106: reading returns all that a container writes, however the runtime splits it, and the last n lines are the
// end of it.
func TestReadGivesBackWhatWasWritten(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		var file strings.Builder
		lines := rapid.SliceOfN(rapid.StringOfN(rapid.RuneFrom([]rune("ab é")), 0, 40, -1), 0, 60).Draw(t, "lines")
		if rapid.Bool().Draw(t, "long") {
			lines = append(lines, strings.Repeat("x", block+rapid.IntRange(-3, 3).Draw(t, "more")))
		}
		for _, text := range lines {
			for text != "" && rapid.Bool().Draw(t, "cut") {
				n := rapid.IntRange(1, len(text)).Draw(t, "at")
				file.WriteString(entry(1, Stdout, "P", text[:n]))
				text = text[n:]
			}
			file.WriteString(entry(1, Stdout, "F", text))
		}
		path := filepath.Join(dir, "0.log")
		if err := os.WriteFile(path, []byte(file.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		tail := rapid.IntRange(-1, len(lines)+2).Draw(t, "tail")
		wanted := lines
		if tail >= 0 {
			wanted = lines[max(len(lines)-tail, 0):]
		}
		want := strings.Join(append(wanted[:len(wanted):len(wanted)], ""), "\n")
		var out bytes.Buffer
		err := Read(context.Background(), logAt(path), with(func(o *Options) { o.Tail = int64(tail) }), nil,
			Writers{&out, &out})
		if err != nil || out.String() != want {
			t.Fatalf("tail %d: %q, %v; want %q", tail, out.String(), err, want)
		}
	})
}

// output is what a follower has written so far; wait blocks until it contains a text.
type output struct {
	mu      sync.Mutex
	text    strings.Builder
	changed chan struct{}
}

func newOutput() *output { return &output{changed: make(chan struct{}, 1000)} }

func (o *output) Write(data []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	defer func() { o.changed <- struct{}{} }()
	return o.text.Write(data)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

func (o *output) wait(t *testing.T, want string) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	for o.String() != want {
		select {
		case <-o.changed:
		case <-deadline:
			t.Fatalf("got %q, want %q", o.String(), want)
		}
	}
}

func appendTo(t *testing.T, path, text string) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

// POD-106: a follower sees lines as they come, across rotations of the file, and ends with the container's last
// lines.
func TestFollow(t *testing.T) {
	path, out := filepath.Join(t.TempDir(), "0.log"), newOutput()
	ended, result := make(chan struct{}), make(chan error, 1)
	running := func(context.Context) (bool, error) {
		select {
		case <-ended:
			return false, nil
		default:
			return true, nil
		}
	}
	go func() {
		result <- Read(t.Context(), logAt(path), with(func(o *Options) { o.Follow = true }), running, Writers{out, out})
	}()
	appendTo(t, path, entry(0, Stdout, "F", "one")) // created after the follower began
	out.wait(t, "one\n")
	appendTo(t, path, strings.TrimSuffix(entry(1, Stdout, "F", "tw"), "\n"))
	appendTo(t, path, "o\n") // an entry that is seen half-written
	out.wait(t, "one\ntwo\n")
	if err := os.Rename(path, path+".old"); err != nil {
		t.Fatal(err)
	}
	appendTo(t, path+".old", entry(2, Stdout, "F", "three")) // the runtime still has the old file open
	appendTo(t, path, entry(3, Stdout, "F", "four"))
	out.wait(t, "one\ntwo\nthree\nfour\n")
	appendTo(t, path, entry(4, Stderr, "F", "bye"))
	close(ended)
	if err := <-result; err != nil || out.String() != "one\ntwo\nthree\nfour\nbye\n" {
		t.Errorf("%q, %v", out.String(), err)
	}
}

func TestFollowEndsWithItsClient(t *testing.T) {
	path, out := logFile(t, entry(0, Stdout, "F", "one")), newOutput()
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() {
		result <- Read(ctx, logAt(path), with(func(o *Options) { o.Follow, o.Tail = true, 1 }),
			func(context.Context) (bool, error) { return true, nil }, Writers{out, out})
	}()
	out.wait(t, "one\n")
	cancel()
	if err := <-result; err != nil {
		t.Errorf("got %v", err)
	}
}

func TestFollowReportsALostRuntime(t *testing.T) {
	lost := errors.New("runtime is gone")
	err := Read(t.Context(), logAt(logFile(t, "")), with(func(o *Options) { o.Follow = true }),
		func(context.Context) (bool, error) { return true, lost }, Writers{})
	if !errors.Is(err, lost) {
		t.Errorf("got %v", err)
	}
}

// POD-106: if a container replaces its log by something else, reading and following it ends at once and shows
// nothing.
func TestReadOnlyPlainLogs(t *testing.T) {
	for name, lay := range plainfiletest.Traps {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "0.log")
			lay(t, path)
			for _, options := range []Options{All, with(func(o *Options) { o.Tail = 3 }),
				with(func(o *Options) { o.Follow = true })} {
				var out bytes.Buffer
				running := func(context.Context) (bool, error) { return true, nil }
				if err := Read(t.Context(), logAt(path), options, running, Writers{&out, &out}); !errors.Is(err,
					plainfile.ErrNotPlain) || out.Len() != 0 {
					t.Errorf("%+v: %q, %v", options, out.String(), err)
				}
			}
		})
	}
}

// A follower whose log is replaced ends.
func TestFollowEndsWhenTheLogIsReplaced(t *testing.T) {
	path, out := logFile(t, entry(0, Stdout, "F", "one")), newOutput()
	result := make(chan error, 1)
	go func() {
		result <- Read(t.Context(), logAt(path), with(func(o *Options) { o.Follow = true }),
			func(context.Context) (bool, error) { return true, nil }, Writers{out, out})
	}()
	out.wait(t, "one\n")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	plainfiletest.Traps["FIFO"](t, path)
	if err := <-result; !errors.Is(err, plainfile.ErrNotPlain) {
		t.Errorf("got %v", err)
	}
}

// Too long entries are left out and not kept in memory, however long they are; the tail begins after them.
func TestReadLeavesOutEndlessLines(t *testing.T) {
	path := logFile(t, entry(0, Stdout, "F", "one"))
	if err := os.Truncate(path, 100<<20); err != nil { // a hole of zeros
		t.Fatal(err)
	}
	appendTo(t, path, "\n"+entry(1, Stdout, "F", "two")+entry(2, Stdout, "F", strings.Repeat("x", 16<<10)))
	long := strings.Repeat("x", 16<<10) + "\n"
	for name, row := range map[string]struct {
		options Options
		want    string
	}{
		"all":      {All, "one\ntwo\n" + long},
		"the tail": {with(func(o *Options) { o.Tail = 5 }), "two\n" + long},
	} {
		var out bytes.Buffer
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := Read(t.Context(), logAt(path), row.options, nil, Writers{&out, &out})
		runtime.ReadMemStats(&after)
		if err != nil || out.String() != row.want {
			t.Errorf("%s: %d bytes instead of %d, %v", name, out.Len(), len(row.want), err)
		}
		if made := after.TotalAlloc - before.TotalAlloc; made > 32<<20 {
			t.Errorf("%s: %d bytes were allocated", name, made)
		}
	}
}

// No contents of a file make the reader fail, and entries survive a round trip.
func FuzzRead(f *testing.F) {
	f.Add([]byte(sample()), int64(2))
	f.Add([]byte(stamp+" stdout F"), int64(-1))
	f.Add([]byte("\n\n \n"), int64(1))
	f.Fuzz(func(t *testing.T, contents []byte, tail int64) {
		path := logFile(t, string(contents))
		var out bytes.Buffer
		if err := Read(t.Context(), logAt(path), Options{Tail: tail, Limit: -1}, nil, Writers{&out, &out}); err != nil {
			t.Fatal(err)
		}
		if out.Len() > len(contents) {
			t.Errorf("%d bytes became %d", len(contents), out.Len())
		}
		if parsed, err := parse(contents); err == nil {
			tag := "F"
			if parsed.partial {
				tag = "P"
			}
			again, err := parse(fmt.Appendf(nil, "%s %s %s %s", parsed.time.Format(time.RFC3339Nano), parsed.stream,
				tag, parsed.text))
			if err != nil || !bytes.Equal(again.text, parsed.text) || again.stream != parsed.stream ||
				!again.time.Equal(parsed.time) {
				t.Errorf("%q became %+v, %v", contents, again, err)
			}
		}
	})
}
