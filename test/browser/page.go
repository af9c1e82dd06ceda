package browser

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
)

// Page is a tab of the browser. A question that fails ends the test.
type Page struct {
	testing.TB
	browser *Browser
	session string
	// complaints are errors that the page's scripts and policy caused; the browser's lock guards them.
	complaints []string
}

// Open opens an address in a tab of its own, of a size in CSS pixels. A width below 500 is that of a phone.
func (b *Browser) Open(t testing.TB, address string, width, height int) *Page {
	t.Helper()
	var target struct{ TargetID, SessionID string }
	p := &Page{TB: t, browser: b}
	p.must(b.Ask("", "Target.createTarget", map[string]any{"url": "about:blank"}, &target))
	p.must(b.Ask("", "Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &target))
	p.session = target.SessionID
	b.mu.Lock()
	b.pages[p.session] = p
	b.mu.Unlock()
	for _, domain := range []string{"Page", "Runtime", "Log"} {
		p.ask(domain+".enable", nil, nil)
	}
	p.Resize(width, height)
	p.ask("Page.navigate", map[string]any{"url": address}, nil)
	return p
}

func (p *Page) must(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

func (p *Page) ask(method string, params, result any) {
	p.Helper()
	p.must(p.browser.Ask(p.session, method, params, result))
}

// note remembers what the page complains of. The browser's lock is held.
func (p *Page) note(event message) {
	switch event.Method {
	case "Runtime.exceptionThrown":
		p.complaints = append(p.complaints, string(event.Params))
	case "Log.entryAdded":
		var said struct {
			Entry struct{ Level, Text, URL string }
		}
		if json.Unmarshal(event.Params, &said) == nil && said.Entry.Level == "error" {
			p.complaints = append(p.complaints, said.Entry.Text+" "+said.Entry.URL)
		}
	}
}

// Complaints returns the errors of the page so far: exceptions, refused requests, and what its policy forbids.
func (p *Page) Complaints() string {
	p.browser.mu.Lock()
	defer p.browser.mu.Unlock()
	return strings.Join(p.complaints, "\n")
}

// Resize gives the page another size.
func (p *Page) Resize(width, height int) {
	p.Helper()
	p.ask("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height,
		"deviceScaleFactor": 1, "mobile": width < 500}, nil)
}

// Prefer gives the page a color scheme, light or dark.
func (p *Page) Prefer(scheme string) {
	p.Helper()
	p.ask("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{
		{"name": "prefers-color-scheme", "value": scheme}}}, nil)
}

// Eval evaluates an expression of JavaScript in the page and returns its value, which JSON can hold, as JSON into
// result. It waits for a promise.
func (p *Page) Eval(expression string, result any) {
	p.Helper()
	p.must(p.eval(expression, result))
}

func (p *Page) eval(expression string, result any) error {
	var said struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *struct{ Exception struct{ Description string } }
	}
	// Trusted Types would forbid eval within the page; the protocol's own is none of the page.
	if err := p.browser.Ask(p.session, "Runtime.evaluate", map[string]any{"expression": expression,
		"returnByValue": true, "awaitPromise": true}, &said); err != nil {
		return err
	}
	if said.ExceptionDetails != nil {
		return fmt.Errorf("evaluating %s: %s", expression, said.ExceptionDetails.Exception.Description)
	}
	if result == nil || len(said.Result.Value) == 0 {
		return nil
	}
	if err := json.Unmarshal(said.Result.Value, result); err != nil {
		return fmt.Errorf("reading the value of %s: %w", expression, err)
	}
	return nil
}

// Text returns the text that a person sees of the first element that a CSS selector selects; empty if there is none, or
// if it is not shown.
func (p *Page) Text(selector string) (text string) {
	p.Helper()
	name, err := json.Marshal(selector)
	p.must(err)
	p.Eval(fmt.Sprintf(`(e => e?.checkVisibility() ? e.innerText : "")(document.querySelector(%s))`, name), &text)
	return text
}

// keys are those that Press knows, with their codes.
var keys = map[string]int{"Tab": 9, "Enter": 13, " ": 32, "ArrowDown": 40, "Escape": 27}

// Press presses and releases a key, with Shift if that stands before it: "Shift+Tab".
func (p *Page) Press(key string) {
	p.Helper()
	modifiers := 0
	if plain, shifted := strings.CutPrefix(key, "Shift+"); shifted {
		key, modifiers = plain, 8
	}
	code, known := keys[key]
	if !known {
		p.Fatalf("the key %q is not known", key)
	}
	event := map[string]any{"type": "keyDown", "key": key, "code": key, "windowsVirtualKeyCode": code,
		"modifiers": modifiers}
	if key == "Enter" {
		event["text"] = "\r"
	}
	p.ask("Input.dispatchKeyEvent", event, nil)
	delete(event, "text")
	event["type"] = "keyUp"
	p.ask("Input.dispatchKeyEvent", event, nil)
}

// Type enters text where the focus is.
func (p *Page) Type(text string) {
	p.Helper()
	p.ask("Input.insertText", map[string]any{"text": text}, nil)
}

// Node is what the page says to a screen reader of one element.
type Node struct{ Role, Name string }

// Tree returns what the page says to a screen reader, from its beginning to its end.
func (p *Page) Tree() (nodes []Node) {
	p.Helper()
	var tree struct {
		Nodes []struct {
			Ignored    bool
			Role, Name struct{ Value any }
		}
	}
	p.ask("Accessibility.getFullAXTree", nil, &tree)
	for _, n := range tree.Nodes {
		if !n.Ignored {
			nodes = append(nodes, Node{fmt.Sprint(n.Role.Value), fmt.Sprint(n.Name.Value)})
		}
	}
	return nodes
}

// Screenshot writes a picture of the whole page into a file.
func (p *Page) Screenshot(path string) {
	p.Helper()
	var shot struct{ Data string }
	p.ask("Page.captureScreenshot", map[string]any{"format": "png", "captureBeyondViewport": true}, &shot)
	picture, err := base64.StdEncoding.DecodeString(shot.Data)
	p.must(err)
	p.must(os.WriteFile(path, picture, 0o644))
}
