package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"keelson.dev/test/browser"
	"keelson.dev/test/mesh/processes"
	"keelson.dev/test/scenario"
)

// watched are objects as a page shows them: a Deployment that is rolled out and writes a log, and a Pod that no node
// has room for. Its name is markup.
const watched = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: watched}
spec:
  replicas: 2
  selector: {matchLabels: {app: watched}}
  template:
    metadata: {labels: {app: watched}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - {name: c, image: "` + scenario.Server + `", env: [{name: PASSWORD, value: ` + credential + `}]}
---
apiVersion: v1
kind: Pod
metadata: {name: large, annotations: {note: "<img src=x onerror=alert(1)>"}}
spec: {containers: [{name: c, image: "` + scenario.Server + `", resources: {requests: {cpu: "640"}}}]}
---
apiVersion: v1
kind: Event
metadata: {name: markup}
involvedObject: {kind: Pod, name: large, namespace: NAMESPACE}
reason: Markup
type: Warning
message: "<b id=injected>bold</b>"
`

// expectConsole opens the page of keel console in a browser, on a mesh with one node.
func expectConsole(t *testing.T, m *processes.Mesh) {
	b := browser.Start(t)
	w := scenario.In(t, m)
	c := console{World: w, url: startConsole(t, m, "--namespace", w.Namespace)}
	c.Page = b.Open(t, c.url, 1280, 900)
	c.shots = filepath.Join(scenario.BinDir(), "screenshots")
	must(t, os.MkdirAll(c.shots, 0o755))
	c.awaitText("#connection", "live")
	c.followsChanges()
	c.explains()
	c.showsNodesAndMesh()
	c.worksByKeyboard()
	c.fitsAPhone()
	if said := c.Complaints(); said != "" {
		t.Errorf("the page complains:\n%s", said)
	}
	c.refusesStrangers()
}

// console is a page of keel console.
type console struct {
	*scenario.World
	*browser.Page
	url, shots string
}

// startConsole starts keel console, and returns the address that it prints. It ends with the test, by a signal, without
// an error.
func startConsole(t *testing.T, m *processes.Mesh, args ...string) string {
	t.Helper()
	run := exec.Command(filepath.Join(scenario.BinDir(), "keel"),
		append([]string{"--data-dir", m.DataDir, "console"}, args...)...)
	run.Stderr = os.Stderr
	out, err := run.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		must(t, run.Process.Signal(syscall.SIGTERM))
		if err := run.Wait(); err != nil {
			t.Errorf("keel console: %v", err)
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("keel console prints no address: %v", err)
	}
	return strings.TrimSpace(line)
}

// awaitText waits until what a person sees of an element matches an expression.
func (c console) awaitText(selector, pattern string) {
	c.World.Helper()
	want := regexp.MustCompile(pattern)
	c.Await(fmt.Sprintf("%s to show %s", selector, pattern), func() scenario.Answer {
		if text := c.Text(selector); !want.MatchString(text) {
			return scenario.Saw(text)
		}
		return ""
	})
}

// shoot takes a picture in each color scheme.
func (c console) shoot(name string) {
	c.World.Helper()
	for _, scheme := range []string{"dark", "light"} {
		c.Prefer(scheme)
		c.Screenshot(filepath.Join(c.shots, "console-"+name+"-"+scheme+".png"))
	}
}

// click clicks the first element that a selector matches, as soon as there is one.
func (c console) click(selector string) {
	c.World.Helper()
	c.Await("an element "+selector, func() scenario.Answer {
		var there bool
		c.Eval(fmt.Sprintf(`(() => { const it = document.querySelector(%q); it?.click(); return it !== null; })()`,
			selector), &there)
		return scenario.Left(map[bool]string{false: "there is none"}[there])
	})
}

// open shows a view, by the navigation.
func (c console) open(view string) {
	c.World.Helper()
	c.click("nav a[data-view=" + view + "]")
	c.awaitText("h2[id$="+view+"]", "(?i)^"+view)
}

// followsChanges: objects appear and change without a reload, and as text.
func (c console) followsChanges() {
	c.Eval(`void (window.loadedOnce = true)`, nil)
	c.awaitText("#view-workloads caption", "^0 workloads")
	c.KubectlWith(strings.ReplaceAll(watched, "NAMESPACE", c.Namespace), "apply", "-f", "-")
	c.awaitText("#view-workloads tbody", `watched\s+Deployment\s+`+c.Namespace+`\s+2 of 2\s+rolled out`)
	c.Kubectl("scale", "deployment", "watched", "--replicas=3")
	c.awaitText("#view-workloads tbody", `3 of 3\s+rolled out`)
	c.shoot("workloads")
	c.open("events")
	c.awaitText("#view-events tbody", `Markup[\s\S]*<b id=injected>bold</b>`)
	var injected, loadedOnce bool
	c.Eval(`document.querySelector("#injected, img") !== null`, &injected)
	c.Eval(`window.loadedOnce === true`, &loadedOnce)
	if injected || !loadedOnce {
		c.World.Errorf("markup became elements: %t; the page was not loaded again: %t", injected, loadedOnce)
	}
	c.awaitText("#changes", "changed") // for a screen reader, some time later
	c.shoot("events")
	c.click(`#pause`)
	c.awaitText("#connection", "paused")
	c.open("workloads")
	c.awaitText("#connection", "live")
}

// explains: a Pod's view says what keel explain says, and shows logs.
func (c console) explains() {
	m := c.Mesh.(*processes.Mesh)
	c.open("pods")
	c.awaitText("#view-pods tbody", `large[\s\S]*Pending[\s\S]*Unschedulable: `)
	c.shoot("pods")
	c.Eval(`[...document.querySelectorAll("#view-pods tbody th a")].find((a) => a.text === "large").click()`, nil)
	c.awaitText("#heading-object", "^Pod large$")
	c.Await("the page to say what keel explain says", func() scenario.Answer {
		said, err := m.Keel(c.World.Context(), "explain", "pod", "large", "--namespace", c.Namespace)
		if err != nil {
			return scenario.Sawf("%v: %s", err, said)
		}
		var shown string
		if c.Eval(`document.querySelector("#explanation").textContent`, &shown); shown != said {
			c.click(`#ask`)
			return scenario.Sawf("page:\n%s\nkeel explain:\n%s", shown, said)
		}
		return ""
	})
	c.awaitText("#explanation", "WouldFit: ")
	c.shoot("explanation")

	c.open("workloads")
	c.click(`#view-workloads tbody th a`)
	c.awaitText("#heading-object", "^Deployment watched$")
	c.awaitText("#runs caption", "^3 Pods")
	c.awaitText("#explanation", `workload-controllers: `)
	c.shoot("deployment")
	c.click(`#runs tbody th a`)
	c.awaitText("#heading-object", "^Pod watched-")
	c.awaitText("#facts", `Belongs to\s+Deployment watched`)
	c.click(`#log-choice [type=submit]`)
	c.awaitText("#log-state", "The log is followed")
	c.awaitText("#log", `\S`)
	c.shoot("log")
	var text string
	if c.Eval(`document.documentElement.outerHTML`, &text); strings.Contains(text, credential) {
		c.World.Error("the page has the value of an environment variable")
	}
}

// showsNodesAndMesh: who runs where, and who leads what.
func (c console) showsNodesAndMesh() {
	c.open("nodes")
	c.awaitText("#view-nodes tbody", `node-1[\s\S]*ready[\s\S]*3 Pods`)
	c.click(`#view-nodes summary`)
	c.awaitText("#view-nodes details", c.Namespace+`/watched-`)
	c.shoot("nodes")
	c.open("mesh")
	for _, daemon := range []string{"apiserver", "scheduler", "workload-controllers", "podgc", "nodeagent-node-1"} {
		c.awaitText(`#view-mesh [data-table=daemons] tbody`, daemon+`\s+running`)
	}
	c.awaitText(`#view-mesh [data-table=leaders] tbody`, `workload-controllers\.deployment`)
	c.shoot("mesh")
}

// worksByKeyboard: Tab reaches everything in the order of the page, what has the focus is seen to have it, and Enter
// opens views. A screen reader finds landmarks, headings and tables.
func (c console) worksByKeyboard() {
	c.open("workloads")
	c.awaitText("#view-workloads tbody", "watched")
	c.Eval(`document.activeElement.blur()`, nil)
	c.Eval(`document.querySelector("#skip").focus()`, nil)
	var order []string
	want := []string{"skip", "pause", "Workloads", "Pods", "Nodes", "Mesh", "Events", "filter", "troubled", "watched"}
	for range want {
		var at struct {
			Name    string
			Visible bool
		}
		c.Eval(`(() => { const e = document.activeElement; const s = getComputedStyle(e); return {
			name: e.id || e.textContent.trim(), visible: e.getBoundingClientRect().top >= 0 &&
			s.outlineStyle !== "none" && parseFloat(s.outlineWidth) >= 2 }; })()`, &at)
		if !at.Visible {
			c.World.Errorf("nobody sees that %s has the focus", at.Name)
		}
		order = append(order, at.Name)
		c.Press("Tab")
	}
	if !slices.Equal(order, want) {
		c.World.Errorf("the keyboard goes to %q, want %q", order, want)
	}
	c.Eval(`document.querySelector("nav a[data-view=pods]").focus()`, nil)
	c.Press("Enter")
	var focused string
	c.awaitText("#heading-pods", "^Pods$")
	c.Await("the focus to be at the view's heading", func() scenario.Answer {
		if c.Eval(`document.activeElement.id`, &focused); focused != "heading-pods" {
			return scenario.Saw(focused)
		}
		return ""
	})
	c.Eval(`document.querySelector("#filter").focus()`, nil)
	c.Type("large")
	c.awaitText("#view-pods caption", "^1 of 4 Pods")
	c.Eval(`document.querySelector("#skip").focus()`, nil)
	c.Press("Enter")
	if c.Eval(`document.activeElement.id`, &focused); focused != "content" {
		c.World.Errorf("the skip link goes to %q", focused)
	}
	tree := c.Tree()
	for _, want := range []browser.Node{{Role: "banner"}, {Role: "navigation", Name: "Views"}, {Role: "main"},
		{Role: "search", Name: "Filters"}, {Role: "contentinfo"}, {Role: "heading", Name: "Keelson console"},
		{Role: "heading", Name: "Pods"}, {Role: "columnheader", Name: "Waits"}, {Role: "rowheader", Name: "large"},
		{Role: "searchbox", Name: "Filter"}, {Role: "button", Name: "Pause"}, {Role: "status"}} {
		if !slices.ContainsFunc(tree, func(n browser.Node) bool {
			return n.Role == want.Role && (want.Name == "" || n.Name == want.Name)
		}) {
			c.World.Errorf("a screen reader finds no %s %q among %v", want.Role, want.Name, tree)
		}
	}
	var headings int
	if c.Eval(`document.querySelectorAll("h1").length`, &headings); headings != 1 {
		c.World.Errorf("the page has %d headings of the first level", headings)
	}
}

// fitsAPhone: on a narrow screen no view is wider than the screen, and tables are still tables for a screen reader.
func (c console) fitsAPhone() {
	c.Resize(360, 740)
	c.Eval(`document.querySelector("#filter").value = "";
		document.querySelector("#filter").dispatchEvent(new Event("input"))`, nil)
	fits := func(name string) {
		var wide []string
		c.Eval(`[...document.querySelectorAll("body *")].filter((e) => e.checkVisibility() &&
			getComputedStyle(e).position !== "absolute" && e.getBoundingClientRect().right > innerWidth + 0.5)
			.map((e) => e.tagName + "#" + e.id + " " + e.textContent.slice(0, 60))`, &wide)
		var scrolls bool
		c.Eval(`document.documentElement.scrollWidth > innerWidth`, &scrolls)
		if len(wide) > 0 || scrolls {
			c.World.Errorf("%s does not fit (it scrolls: %t): %q", name, scrolls, wide)
		}
		c.shoot("phone-" + name)
	}
	for view, shows := range map[string]string{"workloads": "watched", "pods": "large", "nodes": "node-1",
		"mesh": "apiserver", "events": "Markup"} {
		c.open(view)
		c.awaitText("#view-"+view+" tbody", shows)
		fits(view)
	}
	c.open("pods")
	c.awaitText("#view-pods tbody", "large")
	tree := c.Tree()
	for _, want := range []browser.Node{{Role: "columnheader", Name: "Waits"}, {Role: "rowheader", Name: "large"}} {
		if !slices.Contains(tree, want) {
			c.World.Errorf("on a phone, a screen reader finds no %v among %v", want, tree)
		}
	}
	c.Eval(`[...document.querySelectorAll("#view-pods tbody th a")].find((a) => a.text === "large").click()`, nil)
	c.awaitText("#explanation", "WouldFit: ")
	fits("explanation")
}

// refusesStrangers: without the token there is the page, and nothing of the mesh.
func (c console) refusesStrangers() {
	base, secret, found := strings.Cut(c.url, "/#token=")
	if !found || secret == "" {
		c.World.Fatalf("the address is %q", c.url)
	}
	for header, want := range map[string]int{"Bearer " + secret: http.StatusOK, "Bearer x": http.StatusUnauthorized,
		"": http.StatusUnauthorized} {
		request, err := http.NewRequestWithContext(c.World.Context(), http.MethodGet, base+"/api/about", nil)
		if err != nil {
			c.World.Fatal(err)
		}
		request.Header.Set("Authorization", header)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			c.World.Fatal(err)
		}
		text, err := io.ReadAll(response.Body)
		must(c.World, err)
		must(c.World, response.Body.Close())
		if response.StatusCode != want || want != http.StatusOK && strings.Contains(string(text), c.Namespace) {
			c.World.Errorf("with %q: %d %s", header, response.StatusCode, text)
		}
	}
}
