// Package browser has a headless Chromium open pages, press keys and say what it shows. It speaks the Chrome DevTools
// Protocol (https://chromedevtools.github.io/devtools-protocol) over pipes, so that nothing listens.
package browser

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"
)

// programs are the names under which a Chromium may be installed.
var programs = []string{"chromium", "chromium-headless-shell", "google-chrome-stable"}

// patience bounds each question to the browser.
const patience = time.Minute

// Browser is a Chromium that runs.
type Browser struct {
	to io.Writer

	mu sync.Mutex // guards what follows, and writing
	// last is the number of the last question, asked are those that have no answer yet.
	last  int
	asked map[int]chan message
	// pages are by their sessions.
	pages map[string]*Page
	ended error
}

// message is a question, an answer or an event.
type message struct {
	ID        int             `json:"id,omitempty"`
	SessionID string          `json:"sessionId,omitempty"`
	Method    string          `json:"method,omitempty"`
	Params    json.RawMessage `json:"params,omitempty"`
	Result    json.RawMessage `json:"result,omitempty"`
	Error     *struct {
		Message string `json:"message"`
	} `json:"error,omitempty"`
}

// Start starts a Chromium that ends with the test. The test is skipped where none is installed.
func Start(t testing.TB) *Browser {
	t.Helper()
	program := ""
	for _, name := range programs {
		if path, err := exec.LookPath(name); err == nil {
			program = path
			break
		}
	}
	if program == "" {
		t.Skip("no Chromium is installed; make browser installs one where there is apt")
	}
	b := &Browser{asked: map[int]chan message{}, pages: map[string]*Page{}}
	if err := b.start(t, program); err != nil {
		t.Fatal(err)
	}
	return b
}

// start starts the program. It reads what it is told from its file 3, and writes what it says to 4.
func (b *Browser) start(t testing.TB, program string) error {
	hears, tells, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("making a pipe to the browser: %w", err)
	}
	says, speaks, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("making a pipe from the browser: %w", err)
	}
	profile, err := os.MkdirTemp("", "keelson-browser-")
	if err != nil {
		return fmt.Errorf("making a folder for the browser: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background()) // cleanups of the test still use it
	command := exec.CommandContext(ctx, program, "--headless=new", "--remote-debugging-pipe",
		"--user-data-dir="+profile, "--no-first-run", "--no-default-browser-check", "--disable-gpu",
		"--disable-dev-shm-usage", "--disable-background-networking", "--disable-component-update",
		"--disable-default-apps", "--disable-sync", "--lang=en", "--hide-scrollbars",
		"--no-sandbox") // root has none, and the pages are our own
	var complaints bytes.Buffer
	command.Stderr = &complaints
	command.ExtraFiles = []*os.File{hears, speaks}
	command.WaitDelay = 10 * time.Second
	if err := command.Start(); err != nil {
		cancel()
		return fmt.Errorf("starting %s: %w", program, err)
	}
	_, _ = hears.Close(), speaks.Close() // it has its own
	b.to = tells
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.read(says)
	}()
	t.Cleanup(func() {
		_ = b.Ask("", "Browser.close", nil, nil)
		cancel()
		_ = command.Wait()
		<-done
		_, _ = tells.Close(), says.Close()
		if err := os.RemoveAll(profile); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("the browser complains:\n%s", complaints.String())
		}
	})
	return nil
}

// read takes what the browser says until it ends. Each message ends with a zero byte.
func (b *Browser) read(from io.Reader) {
	in := bufio.NewReader(from)
	for {
		text, err := in.ReadBytes(0)
		if err != nil {
			b.end(fmt.Errorf("the browser has ended: %w", err))
			return
		}
		var said message
		if err := json.Unmarshal(bytes.TrimSuffix(text, []byte{0}), &said); err != nil {
			b.end(fmt.Errorf("the browser says what cannot be read: %w", err))
			return
		}
		b.take(said)
	}
}

// take hands an answer to who asked, and notes an event.
func (b *Browser) take(said message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if waits := b.asked[said.ID]; waits != nil {
		delete(b.asked, said.ID)
		waits <- said
		return
	}
	if page := b.pages[said.SessionID]; page != nil {
		page.note(said)
	}
}

// end answers all questions with an error.
func (b *Browser) end(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = err
	for id, waits := range b.asked {
		delete(b.asked, id)
		close(waits)
	}
}

// Ask calls a method of the protocol with params, in a page's session or in none, and reads the answer into result
// unless that is nil.
func (b *Browser) Ask(session, method string, params, result any) error {
	waits, err := b.send(session, method, params)
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	select {
	case said, open := <-waits:
		switch {
		case !open:
			return fmt.Errorf("%s: %w", method, b.ended)
		case said.Error != nil:
			return fmt.Errorf("%s: %s", method, said.Error.Message)
		case result == nil:
			return nil
		}
		if err := json.Unmarshal(said.Result, result); err != nil {
			return fmt.Errorf("reading the answer to %s: %w", method, err)
		}
		return nil
	case <-time.After(patience):
		return fmt.Errorf("%s: no answer for %s", method, patience)
	}
}

func (b *Browser) send(session, method string, params any) (chan message, error) {
	if params == nil {
		params = struct{}{}
	}
	about, err := json.Marshal(params)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended != nil {
		return nil, b.ended
	}
	b.last++
	text, err := json.Marshal(message{ID: b.last, SessionID: session, Method: method, Params: about})
	if err != nil {
		return nil, err
	}
	waits := make(chan message, 1)
	b.asked[b.last] = waits
	if _, err := b.to.Write(append(text, 0)); err != nil {
		delete(b.asked, b.last)
		return nil, errors.Join(err, b.ended)
	}
	return waits, nil
}
