package servertest_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"keelson.dev/kit/failpoint"
	"keelson.dev/services/apiserver/inproc"
	"keelson.dev/services/apiserver/internal/servertest"
)

// TestWhileTheStoreOpens: clients are answered, readiness says what it waits for, and a stop ends the start.
func TestWhileTheStoreOpens(t *testing.T) {
	if err := failpoint.Arm("apiserver/store.open.before", "sleep(1h)"); err != nil {
		t.Fatal(err)
	}
	defer failpoint.Disarm("apiserver/store.open.before")
	config := servertest.NewConfig(t, t.TempDir())
	doing := make(chan string, 16)
	config.Progress = func(what string) { doing <- what }
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := inproc.Start(ctx, config, zap.NewNop())
		ended <- err
	}()
	// Only from now on is there anything to say: who comes before is answered as well.
	for want := "opening its store in " + config.DataDir; <-doing != want; {
	}
	status, body := askStarting(t, config.Listener.Addr().String())
	const told = `"the apiserver is starting: opening its store"`
	if status != http.StatusServiceUnavailable || !strings.Contains(body, told) {
		t.Errorf("a request meanwhile: %d %s", status, body)
	}
	if strings.Contains(body, config.DataDir) {
		t.Errorf("anybody is told where the store is: %s", body)
	}
	stop()
	select {
	case err := <-ended:
		if err == nil || !strings.HasPrefix(err.Error(), "stopped while opening the store in "+config.DataDir) {
			t.Errorf("the start ended with %v", err)
		}
	case <-time.After(30 * time.Second):
		t.Error("the start did not end")
	}
}

func askStarting(t *testing.T, address string) (status int, body string) {
	t.Helper()
	client := http.Client{
		Timeout:   30 * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true},
	}
	defer client.CloseIdleConnections()
	response, err := client.Get("https://" + address + "/api/v1/namespaces")
	if err != nil {
		t.Fatalf("asking a server that starts: %v", err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// TestDamagedStoreEndsTheDaemon: status 1 and one sentence. storage has the table of damages.
func TestDamagedStoreEndsTheDaemon(t *testing.T) {
	dir := t.TempDir()
	startChild(t, dir, "").kill()
	wal := filepath.Join(dir, "data", "etcd", "member", "wal")
	if err := os.RemoveAll(wal); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var stderr bytes.Buffer
	command := exec.CommandContext(ctx, os.Args[0])
	command.Env, command.Stderr = append(os.Environ(), daemonEnv+"="+dir), &stderr
	_ = command.Run()
	status := command.ProcessState.ExitCode()
	want := "keelson-apiserver: " + wal + " holds no log, though its database is there; restore "
	if status != 1 || !strings.HasPrefix(stderr.String(), want) || strings.Count(stderr.String(), "\n") != 1 {
		t.Errorf("status %d, %q, want 1 and one line with %q", status, stderr.String(), want)
	}
}
