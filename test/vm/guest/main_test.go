package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"keelson.dev/test/vm/wire"
)

// A command's output, its input and its end pass through, also where it leaves a daemon behind.
func TestRun(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(run))
	defer server.Close()
	for name, row := range map[string]struct {
		argv               []string
		stdin, output, end string
	}{
		"well":      {argv: []string{"echo", "a", "b"}, output: "a b\n", end: "0"},
		"input":     {argv: []string{"cat"}, stdin: "in", output: "in", end: "0"},
		"failed":    {argv: []string{"sh", "-c", "echo out; echo err >&2; exit 7"}, output: "out\nerr\n", end: "7"},
		"killed":    {argv: []string{"sh", "-c", "kill -9 $$"}, end: "-1"},
		"not there": {argv: []string{"/nosuch"}, output: "fork/exec /nosuch: no such file or directory", end: "127"},
		"daemon":    {argv: []string{"sh", "-c", "sleep 5 & echo left"}, output: "left\n", end: "0"},
	} {
		t.Run(name, func(t *testing.T) {
			answer, err := http.Post(server.URL+"?"+url.Values{wire.ArgumentKey: row.argv}.Encode(), "",
				strings.NewReader(row.stdin))
			if err != nil {
				t.Fatal(err)
			}
			defer answer.Body.Close()
			body, err := io.ReadAll(answer.Body)
			if err != nil {
				t.Fatal(err)
			}
			if end := answer.Trailer.Get(wire.CodeTrailer); string(body) != row.output || end != row.end {
				t.Errorf("it printed %q and ended with %s, want %q and %s", body, end, row.output, row.end)
			}
		})
	}
	answer, err := http.Post(server.URL, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusBadRequest {
		t.Errorf("no command at all: %s", answer.Status)
	}
}
