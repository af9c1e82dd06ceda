package credentialprovider

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	credentialproviderv1 "k8s.io/kubelet/pkg/apis/credentialprovider/v1"
)

// acts is set for a process of this test that is a plugin, and says what it does.
const acts = "CREDENTIAL_PROVIDER_TEST_ACTS"

func TestMain(m *testing.M) {
	if act := os.Getenv(acts); act != "" {
		behave(act)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// behave is the plugin.
func behave(act string) {
	switch act {
	case "hang":
		stay()
	case "flood":
		chunk := bytes.Repeat([]byte("a"), 1<<20)
		for range 10 {
			_, _ = os.Stdout.Write(chunk)
		}
		stay() // it is ended, not awaited
	case "babble": // says much, and answers
		_, _ = os.Stderr.Write(bytes.Repeat([]byte("a"), 10<<20))
		respond()
	case "fail":
		fmt.Fprintf(os.Stderr, "no role for\tthis machine\n%s %s\n", os.Getenv("PASSWORD"),
			request().ServiceAccountToken)
		os.Exit(7)
	case "kill":
		_ = unix.Kill(os.Getpid(), unix.SIGTERM)
		stay()
	case "fork", "leave": // starts another that keeps its output open, and answers
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), acts+"=hang")
		child.Stdin, child.Stdout, child.Stderr = os.Stdin, os.Stdout, os.Stderr
		child.SysProcAttr = &syscall.SysProcAttr{Setsid: act == "leave"}
		if err := child.Start(); err != nil {
			panic(err)
		}
		if err := os.WriteFile(os.Getenv("CHILD"), []byte(strconv.Itoa(child.Process.Pid)), 0o600); err != nil {
			panic(err)
		}
		respond()
	case "deaf": // does not read the request
		fmt.Print(whole)
	case "await": // answers once its standard error is read to the end of a line by the test, see TestPluginIsReplaced
		fmt.Fprintln(os.Stderr, "running")
		for {
			if _, err := os.Stat(os.Getenv("GO")); err == nil {
				break
			}
			<-time.After(time.Millisecond)
		}
		respond()
	default:
		respond()
	}
}

// stay keeps the plugin from ending by itself.
func stay() {
	for {
		<-time.After(time.Hour)
	}
}

func request() (r credentialproviderv1.CredentialProviderRequest) {
	data, err := io.ReadAll(os.Stdin)
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	if err != nil {
		panic(err)
	}
	return r
}

// respond answers with what the plugin was given.
func respond() {
	r := request()
	data, err := json.Marshal(map[string]any{"kind": responseKind, "apiVersion": r.APIVersion, "cacheKeyType": "Image",
		"auth": map[string]any{r.Image: map[string]string{"username": r.Kind + " " + strings.Join(os.Args, " "),
			"password": os.Getenv("PASSWORD") + " " + os.Getenv("HOME_OF_TEST") + " " + r.ServiceAccountToken}}})
	if err != nil {
		panic(err)
	}
	fmt.Println(string(data))
}

// install puts this program into a folder under a name, and returns the folder.
func install(t *testing.T, name string) string {
	t.Helper()
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, name)
	if os.Link(self, file) == nil {
		return dir
	}
	data, err := os.ReadFile(self) // the folder is on another file system
	if err != nil {
		t.Fatal(err)
	}
	program(t, file, string(data))
	return dir
}

// program writes a program. A process that is started meanwhile would have it open for writing, so none is.
func program(t *testing.T, file, text string) {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(file, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
}

const input = `{"kind":"CredentialProviderRequest","apiVersion":"credentialprovider.kubelet.k8s.io/v1",` +
	`"image":"reg.io/a","serviceAccountToken":"eyJtoken"}`

// to returns a call of a plugin that acts so.
func to(t *testing.T, act string) call {
	return call{binDir: install(t, "plugin"), name: "plugin", args: []string{"one", "two"},
		env:     append(os.Environ(), acts+"="+act, "PASSWORD="+secretText),
		request: []byte(input), limit: 10 * time.Minute}
}

// A plugin gets its arguments, the agent's variables with its own, and the request; what it prints is its answer.
func TestPluginAnswers(t *testing.T) {
	t.Setenv("HOME_OF_TEST", "here")
	for _, act := range []string{"answer", "babble"} {
		c := to(t, act)
		printed, err := run(t.Context(), c)
		if err != nil {
			t.Fatal(act, err)
		}
		got, err := readAnswer(printed)
		auth := got.auth["reg.io/a"]
		if err != nil || auth.Username != "CredentialProviderRequest "+filepath.Join(c.binDir, "plugin")+" one two" ||
			auth.Password != secretText+" here eyJtoken" {
			t.Errorf("%s: %+v, %v", act, got, err)
		}
	}
}

// A plugin need not read a request, however large.
func TestPluginDoesNotRead(t *testing.T) {
	c := to(t, "deaf")
	c.request = bytes.Repeat([]byte(" "), 4<<20)
	printed, err := run(t.Context(), c)
	if err == nil {
		_, err = readAnswer(printed)
	}
	if err != nil {
		t.Error(err)
	}
}

// What is wrong with a plugin is said in one sentence.
func TestBrokenPlugins(t *testing.T) {
	for _, row := range []struct {
		act   string
		limit time.Duration
		want  string
	}{
		{"hang", time.Second / 4, "did not end within 250ms"},
		{"flood", 10 * time.Minute, "printed more than 1048576 bytes"},
		{"fail", 10 * time.Minute, "ended with status 7"},
		{"kill", 10 * time.Minute, "was ended by a signal: terminated"},
	} {
		c := to(t, row.act)
		c.limit = row.limit
		printed, err := run(t.Context(), c)
		if err == nil || err.Error() != row.want || len(printed) > 0 {
			t.Errorf("%s: %d bytes, %v; want %s", row.act, len(printed), err, row.want)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := run(ctx, to(t, "hang")); err == nil {
		t.Error("a plugin is started after the agent's end")
	}
}

// Only an executable file in the folder is run.
func TestProgramsThatAreNotRun(t *testing.T) {
	dir, other := install(t, "plugin"), install(t, "plugin")
	link := func(to, name string) {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	link("plugin", "alias")
	link(filepath.Join(other, "plugin"), "out")
	link("../"+filepath.Base(other)+"/plugin", "relative")
	link("nowhere", "dangling")
	link("loop", "loop")
	if err := os.WriteFile(filepath.Join(dir, "text"), []byte("#!/bin/sh\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o755); err != nil {
		t.Fatal(err)
	}
	program(t, filepath.Join(dir, "noprogram"), "\x00\x01")
	linked := filepath.Join(t.TempDir(), "bin")
	if err := os.Symlink(dir, linked); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct{ dir, name, want string }{
		{dir, "plugin", ""},
		{dir, "alias", ""},
		{linked, "plugin", ""},
		{dir, "none", "is not in " + dir},
		{dir, "dangling", "is not in " + dir},
		{dir + "/none", "plugin", "is not in " + dir + "/none: no such file or directory"},
		{dir, "out", "is a link that leads out of " + dir},
		{dir, "relative", "is a link that leads out of " + dir},
		{dir, "loop", "cannot be found: "},
		{dir, "text", "is not an executable file in " + dir},
		{dir, "folder", "is not an executable file in " + dir},
		{dir, "noprogram", "could not be started: exec format error"},
	} {
		c := to(t, "answer")
		c.binDir, c.name = row.dir, row.name
		_, err := run(t.Context(), c)
		got, begins := fmt.Sprint(err), strings.HasSuffix(row.want, " ")
		if row.want == "" && err != nil ||
			row.want != "" && (!strings.HasPrefix(got, row.want) || !begins && got != row.want) {
			t.Errorf("%s: %v, want %q", row.name, err, row.want)
		}
	}
}

// What a plugin leaves running is ended with it, and neither its child that holds the output open nor one that has got
// away keeps the answer back.
func TestPluginLeavesAnother(t *testing.T) {
	for _, act := range []string{"fork", "leave"} {
		c := to(t, act)
		file := filepath.Join(t.TempDir(), "child")
		c.env = append(c.env, "CHILD="+file)
		printed, err := run(t.Context(), c)
		if err != nil {
			t.Fatal(act, err)
		}
		if _, err := readAnswer(printed); err != nil {
			t.Error(act, err)
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		child, err := strconv.Atoi(string(data))
		if err != nil {
			t.Fatal(err)
		}
		if act == "leave" {
			if err := unix.Kill(child, unix.SIGKILL); err != nil {
				t.Errorf("a process that left the plugin's group: %v", err)
			}
			continue
		}
		for !isGone(child) {
			<-time.After(time.Millisecond)
		}
	}
}

// isGone reports whether a process has ended. Whoever reaps it may take its time.
func isGone(pid int) bool {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(data), ") Z ")
}

// A plugin that is replaced while it runs answers; the next run is one of the new file.
func TestPluginIsReplaced(t *testing.T) {
	c := to(t, "await")
	goOn := filepath.Join(t.TempDir(), "go")
	c.env = append(c.env, "GO="+goOn)
	done := make(chan error)
	go func() {
		printed, err := run(t.Context(), c)
		if err == nil {
			_, err = readAnswer(printed)
		}
		done <- err
	}()
	for !isRun(filepath.Join(c.binDir, c.name)) {
		<-time.After(time.Millisecond)
	}
	next := filepath.Join(c.binDir, "next")
	program(t, next, "#!/bin/sh\necho new\n")
	if err := os.Rename(next, filepath.Join(c.binDir, c.name)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(goOn, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error("the old one:", err)
	}
	if printed, err := run(t.Context(), c); err != nil || string(printed) != "new\n" {
		t.Errorf("the new one: %q, %v", printed, err)
	}
}

// isRun reports whether a process runs that was started as the program.
func isRun(program string) bool {
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range all {
		if data, err := os.ReadFile(file); err == nil && strings.HasPrefix(string(data), program+"\x00") {
			return true
		}
	}
	return false
}

// What a plugin says is shown on one line, not at any length, and not from a secret on.
func TestShown(t *testing.T) {
	secrets := []string{"", secretText, "token of a Pod that is long"}
	for said, want := range map[string]string{
		"":                                  "",
		"no role\n\tfor this\x1b[2Kone\r\n": "no role for this [2Kone",
		"a " + secretText + " b":            "a (removed)",
		"a token of a Pod that is cut":      "a (removed)",
		"got eyJhbGciOi":                    "got (removed)",
		"hunter2 is half of it":             "hunter2 is half of it",
		"bad \xff byte":                     "bad ? byte",
		strings.Repeat("é", 150):            strings.Repeat("é", 100) + "...",
		"x" + strings.Repeat("é", 150):      "x" + strings.Repeat("é", 99) + "...",
	} {
		if got := shown([]byte(said), secrets); got != want {
			t.Errorf("%q is shown as %q, want %q", said, got, want)
		}
	}
}
