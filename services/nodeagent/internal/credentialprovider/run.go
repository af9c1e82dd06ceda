package credentialprovider

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
	"unicode"

	"golang.org/x/sys/unix"
)

const (
	// mostPrinted is how many bytes an answer may have, mostSaid how many of an error's text are kept.
	mostPrinted, mostSaid = 1 << 20, 4 << 10
	// runLimit is how long a plugin may take.
	runLimit = time.Minute
	// lastWords is how long the output of a plugin that has ended is awaited: a process may hold it open that the
	// plugin started in a session of its own.
	lastWords = time.Second
)

// call is one run of a plugin.
type call struct {
	// binDir is the folder of plugins, name the plugin's file in it.
	binDir, name string
	args, env    []string
	request      []byte
	// limit is how long it may take.
	limit time.Duration
}

// failure is a run that gave no answer. said is what the plugin wrote to its standard error.
type failure struct {
	what string
	said []byte
}

func (f *failure) Error() string { return f.what }

// Why a run was ended.
var (
	errSlow = errors.New("the plugin was too slow")
	errLong = errors.New("the plugin printed too much")
)

// run runs a plugin and returns what it printed. Of what the plugin starts, nothing outlives the run, except what has
// left its process group. The error is a *failure unless the plugin could not be started.
func run(ctx context.Context, c call) ([]byte, error) {
	program, err := find(c.binDir, c.name)
	if err != nil {
		return nil, err
	}
	limited, stop := context.WithTimeoutCause(ctx, c.limit, errSlow)
	defer stop()
	running, end := context.WithCancelCause(limited)
	defer end(nil)
	printed := &bounded{most: mostPrinted, over: func() { end(errLong) }}
	said := &bounded{most: mostSaid, over: func() {}}
	cmd := exec.CommandContext(running, program, c.args...)
	cmd.Args[0] = filepath.Join(c.binDir, c.name) // not where a link leads
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = c.env, bytes.NewReader(c.request), printed, said
	cmd.WaitDelay = lastWords
	group := own(cmd)
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("could not be started: %w", reason(err))
	}
	group.outlive()
	err = cmd.Wait()
	if err == nil || errors.Is(err, exec.ErrWaitDelay) {
		if printed.isOver() {
			return nil, &failure{what: tooLong, said: said.bytes()}
		}
		return printed.bytes(), nil
	}
	return nil, &failure{what: describe(ctx, running, c.limit, err), said: said.bytes()}
}

var tooLong = fmt.Sprintf("printed more than %d bytes", mostPrinted)

// describe says how a run failed.
func describe(ctx, running context.Context, limit time.Duration, err error) string {
	cause := context.Cause(running)
	switch {
	case ctx.Err() != nil:
		return "was ended with the nodeagent"
	case errors.Is(cause, errSlow):
		return fmt.Sprintf("did not end within %s", limit)
	case errors.Is(cause, errLong):
		return tooLong
	}
	if ended := (*exec.ExitError)(nil); errors.As(err, &ended) {
		if ended.ExitCode() < 0 {
			return "was ended by a " + ended.String()
		}
		return fmt.Sprintf("ended with status %d", ended.ExitCode())
	}
	return reason(err).Error()
}

// find returns the program of a plugin: a file in the folder, or one to which a link there leads in the folder.
func find(binDir, name string) (string, error) {
	dir, err := filepath.EvalSymlinks(binDir)
	if err != nil {
		return "", fmt.Errorf("is not in %s: %w", binDir, reason(err))
	}
	program, err := filepath.EvalSymlinks(filepath.Join(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("is not in %s", binDir)
	}
	if err != nil {
		return "", fmt.Errorf("cannot be found: %w", err)
	}
	if filepath.Dir(program) != dir {
		return "", fmt.Errorf("is a link that leads out of %s", binDir)
	}
	info, err := os.Stat(program)
	if err != nil {
		return "", fmt.Errorf("cannot be found: %w", err)
	}
	if !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
		return "", fmt.Errorf("is not an executable file in %s", binDir)
	}
	return program, nil
}

// reason returns an error of the system without the paths around it.
func reason(err error) error {
	if path := (*fs.PathError)(nil); errors.As(err, &path) {
		return path.Err
	}
	return err
}

// processGroup is that of a plugin and of what it starts.
type processGroup struct {
	cmd *exec.Cmd

	mu sync.Mutex // guards gone
	// gone means that the group's number may soon be another's.
	gone bool
}

// own gives the command a process group of its own, which ends with the command's context.
func own(cmd *exec.Cmd) *processGroup {
	g := &processGroup{cmd: cmd}
	cmd.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
	cmd.Cancel = g.kill
	return g
}

func (g *processGroup) kill() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.gone || unix.Kill(-g.cmd.Process.Pid, unix.SIGKILL) != nil {
		return os.ErrProcessDone
	}
	return nil
}

// outlive waits until the started command has ended and ends what is left of its group. It leaves the command itself
// to be waited for: until then its number is nobody else's.
func (g *processGroup) outlive() {
	for unix.Waitid(unix.P_PID, g.cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
	}
	_ = g.kill() // there may be nothing left
	g.mu.Lock()
	defer g.mu.Unlock()
	g.gone = true
}

// bounded keeps the first bytes that are written to it, and calls over when there are more.
type bounded struct {
	most int
	over func()

	mu   sync.Mutex // guards the fields below: a read may go on after the run has ended
	kept []byte
	more bool
}

// Write implements io.Writer and never fails: a plugin is not to wait for a reader.
func (b *bounded) Write(p []byte) (int, error) {
	b.mu.Lock()
	fits := min(len(p), b.most-len(b.kept))
	b.kept = append(b.kept, p[:fits]...)
	exceeds := fits < len(p) && !b.more
	b.more = b.more || exceeds
	b.mu.Unlock()
	if exceeds {
		b.over()
	}
	return len(p), nil
}

func (b *bounded) bytes() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return bytes.Clone(b.kept)
}

func (b *bounded) isOver() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.more
}

// mostShown is how much of what a plugin wrote to its standard error is shown.
const mostShown = 200

// secretBegins is what tokens and objects in base64 begin with.
const secretBegins = "eyJ"

// shown returns the beginning of what a plugin said, on one line and up to the first secret in it, or the first text
// that looks like a token.
func shown(said []byte, secrets []string) string {
	text := strings.ToValidUTF8(string(said), "?")
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }), " ")
	for _, secret := range append([]string{secretBegins}, secrets...) {
		// Its beginning is enough: the end may be cut off.
		if before, _, ok := strings.Cut(text, secret[:min(len(secret), 16)]); ok && secret != "" {
			text = before + "(removed)"
		}
	}
	if len(text) > mostShown {
		text = strings.ToValidUTF8(text[:mostShown], "") + "..."
	}
	return text
}
