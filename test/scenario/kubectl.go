package scenario

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Result is what one kubectl call printed and how it ended.
type Result struct {
	Stdout, Stderr string
	Code           int
}

// Complaint is what kubectl wrote beside its output; it is never empty where kubectl failed.
func (r Result) Complaint() string {
	if r.Code != 0 && r.Stderr == "" {
		return fmt.Sprintf("kubectl ended with %d", r.Code)
	}
	return r.Stderr
}

// Kubectl runs the unmodified kubectl in the world's namespace and fails the test if it does.
func (w *World) Kubectl(args ...string) string {
	w.Helper()
	return w.KubectlWith("", args...)
}

// KubectlWith is Kubectl with standard input.
func (w *World) KubectlWith(stdin string, args ...string) string {
	w.Helper()
	r := w.TryKubectl(stdin, args...)
	if r.Code != 0 {
		w.Fatalf("kubectl %s: status %d\n%s%s", strings.Join(args, " "), r.Code, r.Stdout, r.Stderr)
	}
	return r.Stdout
}

// TryKubectl runs kubectl and returns how it went.
func (w *World) TryKubectl(stdin string, args ...string) Result {
	w.Helper()
	command := w.kubectl(args...)
	var stdout, stderr bytes.Buffer
	command.Stdin, command.Stdout, command.Stderr = strings.NewReader(stdin), &stdout, &stderr
	err := command.Run()
	if command.ProcessState == nil {
		w.Fatalf("kubectl could not be run: %v", err)
	}
	return Result{Stdout: stdout.String(), Stderr: stderr.String(), Code: command.ProcessState.ExitCode()}
}

func (w *World) kubectl(args ...string) *exec.Cmd {
	w.Helper()
	args = append([]string{"--kubeconfig", w.Mesh.Kubeconfig(), "--namespace", w.Namespace}, args...)
	command := exec.CommandContext(w.Context(), filepath.Join(BinDir(), "kubectl"), args...)
	// A home of its own, so that no cache of another cluster, or of kinds that are gone, is believed.
	command.Env = append(os.Environ(), "HOME="+w.TempDir())
	return command
}

// BinDir is where make puts what it builds: $KEELSON_BIN, or bin/ of this checkout.
func BinDir() string {
	if dir := os.Getenv("KEELSON_BIN"); dir != "" {
		return dir
	}
	return filepath.Join(root(), "bin")
}

// root is the folder of this checkout, or where the test runs if that is in none.
func root() string {
	dir, err := os.Getwd()
	for err == nil {
		if _, err := os.Stat(filepath.Join(dir, "go.work")); err == nil {
			return dir
		}
		if parent := filepath.Dir(dir); parent != dir {
			dir = parent
			continue
		}
		break
	}
	return "."
}

// prints waits until kubectl prints the text for the object.
func (w *World) prints(object, template, want string) {
	w.Helper()
	w.Await(object+" to be "+want, func() Answer {
		if got := w.TryKubectl("", "get", object, "--output=jsonpath="+template).Stdout; got != want {
			return Saw(got)
		}
		return ""
	})
}

// says runs kubectl and compares what it prints.
func (w *World) says(want string, args ...string) {
	w.Helper()
	if got := strings.TrimSpace(w.Kubectl(args...)); got != want {
		w.Errorf("kubectl %s printed %q, want %q", strings.Join(args, " "), got, want)
	}
}

// refuses runs kubectl and expects that it fails with words on standard error.
func (w *World) refuses(stdin string, words []string, args ...string) {
	w.Helper()
	r := w.TryKubectl(stdin, args...)
	if r.Code == 0 {
		w.Errorf("kubectl %s succeeded:\n%s", strings.Join(args, " "), r.Stdout)
	}
	for _, word := range words {
		if !strings.Contains(r.Stderr, word) {
			w.Errorf("kubectl %s said %q, want %q in it", strings.Join(args, " "), r.Stderr, word)
		}
	}
}

// directory writes files into a new directory; a name may have folders.
func (w *World) directory(files map[string]string) string {
	w.Helper()
	dir := w.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			w.Fatalf("making a folder for %s: %v", name, err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			w.Fatalf("writing %s: %v", name, err)
		}
	}
	return dir
}

// awaitOutput waits until what kubectl prints has all the words. Of a log, no word goes over lines: a container's
// two streams share the log, and their lines have no order between the streams.
func (w *World) awaitOutput(words []string, args ...string) string {
	w.Helper()
	if args[0] == "logs" && slices.ContainsFunc(words, func(word string) bool { return strings.Contains(word, "\n") }) {
		w.Fatalf("kubectl %s: a word of %q goes over lines", strings.Join(args, " "), words)
	}
	var got string
	w.Await("kubectl "+strings.Join(args, " "), func() Answer {
		r := w.TryKubectl("", args...)
		got = r.Stdout
		for _, word := range words {
			if !strings.Contains(got, word) {
				return Saw(got + r.Stderr + "lacks " + word)
			}
		}
		return ""
	})
	return got
}
