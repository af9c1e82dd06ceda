package console

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"keelson.dev/cli/internal/console/feed"
	"keelson.dev/cli/internal/console/page"
	"keelson.dev/cli/internal/view"
)

const (
	token = "THETOKEN"
	// credential is wherever a user may have written one.
	credential = "hunter2"
)

// told is an explanation.
type told string

func (s told) Write(out io.Writer) { fmt.Fprint(out, string(s)) }

// objects are a Deployment, its Pod, and what must not be seen.
func objects() []runtime.Object {
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "n", Name: name, Annotations: map[string]string{"hook": credential}}
	}
	spec := corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "hello:1", Args: []string{credential},
		Env: []corev1.EnvVar{{Name: "A", Value: credential}}}}}
	return []runtime.Object{
		&appsv1.Deployment{ObjectMeta: meta("web"), Spec: appsv1.DeploymentSpec{
			Template: corev1.PodTemplateSpec{Spec: spec}}},
		&corev1.Pod{ObjectMeta: meta("web-1"), Spec: spec},
		&corev1.Secret{ObjectMeta: meta("s"), StringData: map[string]string{"password": credential}},
		&corev1.ConfigMap{ObjectMeta: meta("c"), Data: map[string]string{"password": credential}},
	}
}

// served is a console on a server.
type served struct {
	*testing.T
	console *Console
	client  *fake.Clientset
	url     string
}

func serve(t *testing.T, client *fake.Clientset) served {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	c := New(ctx, Config{Client: client,
		Daemons: func(context.Context) ([]view.Daemon, []view.Leader, string) {
			return []view.Daemon{{Name: "scheduler", State: "running"}},
				[]view.Leader{{Lease: "l", Daemon: "scheduler"}}, ""
		},
		Explain: func(_ context.Context, kind, namespace, name string) (view.Writer, error) {
			if name == "nosuch" {
				return nil, errors.New("there is no such thing")
			}
			return told(kind + " " + namespace + "/" + name + " waits"), nil
		}}, token)
	server := httptest.NewServer(c.Handler(func(*http.Request) {}))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
		cancel()
		c.hub.Wait()
	})
	return served{t, c, client, server.URL}
}

// ask sends a request with the token, changed as said, and returns the response.
func (s served) ask(path string, change ...func(*http.Request)) *http.Response {
	s.Helper()
	request, err := http.NewRequestWithContext(s.Context(), http.MethodGet, s.url+path, nil)
	if err != nil {
		s.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	for _, f := range change {
		f(request)
	}
	response, err := http.DefaultTransport.RoundTrip(request) // which follows no redirection
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = response.Body.Close() })
	return response
}

// reads returns all of an answer.
func (s served) reads(response *http.Response) string {
	s.Helper()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		s.Fatal(err)
	}
	return string(text)
}

// follow opens a stream, and returns a function that reads it until a change of a topic satisfies the check. All that
// was read is searched for credentials.
func (s served) follow(path string) (until func(topic string, done func(feed.Change) bool)) {
	s.Helper()
	response := s.ask(path)
	kind := response.Header.Get("Content-Type")
	if response.StatusCode != http.StatusOK || kind != "text/event-stream" {
		s.Fatalf("%s: %d, %s", path, response.StatusCode, kind)
	}
	lines := bufio.NewScanner(response.Body)
	return func(topic string, done func(feed.Change) bool) {
		s.Helper()
		for lines.Scan() {
			text, isData := strings.CutPrefix(lines.Text(), "data: ")
			if strings.Contains(text, credential) {
				s.Errorf("a credential is sent: %s", text)
			}
			var change feed.Change
			if !isData {
				continue
			}
			if err := json.Unmarshal([]byte(text), &change); err != nil {
				s.Fatal(err)
			}
			if change.Topic == topic && done(change) {
				return
			}
		}
		s.Fatalf("the stream ended before what %s is to show: %v", topic, lines.Err())
	}
}

// has reports whether a change sets a row that contains a text.
func has(key, text string) func(feed.Change) bool {
	return func(change feed.Change) bool {
		return slices.ContainsFunc(change.Set, func(row feed.ChangedRow) bool {
			return row.Key == key && strings.Contains(string(row.Row), text)
		})
	}
}

// Rows come as the objects are, and change as they do, without credentials.
func TestStream(t *testing.T) {
	client := fake.NewClientset(objects()...)
	watched := make(chan struct{})
	begins := sync.OnceFunc(func() { close(watched) })
	client.PrependWatchReactor("deployments", func(action clienttesting.Action) (bool, watch.Interface, error) {
		defer begins()
		watcher, err := client.Tracker().Watch(action.GetResource(), action.GetNamespace())
		return true, watcher, err
	})
	s := serve(t, client)
	until := s.follow("/api/stream?topics=deployments,pods,daemons")
	until("deployments", has("n/web", `"done":0,"wanted":1`))
	until("pods", has("n/web-1", `"waits":"waits for the scheduler"`))
	until("daemons", has("daemon/scheduler", `"state":"running"`))
	<-watched // the tracker shows a watch nothing of what was before
	ready := objects()[0].(*appsv1.Deployment)
	ready.Status = appsv1.DeploymentStatus{Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1}
	if _, err := s.client.AppsV1().Deployments("n").Update(t.Context(), ready, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	until("deployments", has("n/web", `"done":1,"wanted":1,"state":"rolled out"`))
	if err := s.client.AppsV1().Deployments("n").Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	until("deployments", func(change feed.Change) bool { return slices.Equal(change.Gone, []string{"n/web"}) })
	for _, topic := range []string{"secrets", "configmaps", "", "deployments,secrets"} {
		if response := s.ask("/api/stream?topics=" + topic); response.StatusCode != http.StatusBadRequest {
			t.Errorf("topics %q: %d", topic, response.StatusCode)
		}
	}
}

// What the kubeconfig may not list is said to be so, and nothing else fails.
func TestAKindThatMayNotBeListed(t *testing.T) {
	client := fake.NewClientset(objects()...)
	refuses := func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "", errors.New("no"))
	}
	client.PrependReactor("list", "nodes", refuses)
	s := serve(t, client)
	until := s.follow("/api/stream?topics=nodes,pods")
	until("pods", has("n/web-1", "waits"))
	again := s.follow("/api/stream?topics=nodes")
	again("nodes", func(change feed.Change) bool {
		return change.Problem == "you may not list and watch the nodes"
	})
}

// Whatever pages ask, the console only reads, and reads no other kinds than it shows.
func TestTheConsoleOnlyReads(t *testing.T) {
	client := fake.NewClientset(objects()...)
	s := serve(t, client)
	shown := []string{"deployments", "statefulsets", "daemonsets", "jobs", "pods", "nodes", "events"}
	for _, topic := range shown {
		s.follow("/api/stream?topics="+topic)(topic, func(change feed.Change) bool { return !change.Loading })
	}
	s.reads(s.ask("/api/explain?topic=pods&namespace=n&name=web-1"))
	s.reads(s.ask("/api/logs?namespace=n&pod=web-1&container=c"))
	for _, action := range client.Actions() {
		if !slices.Contains([]string{"list", "watch", "get"}, action.GetVerb()) ||
			!slices.Contains(shown, action.GetResource().Resource) {
			t.Errorf("%s %s", action.GetVerb(), action.GetResource().Resource)
		}
	}
}

func TestExplain(t *testing.T) {
	s := serve(t, fake.NewClientset())
	for query, want := range map[string]struct {
		status int
		text   string
	}{
		"topic=pods&namespace=n&name=web-1":  {200, `{"text":"Pod n/web-1 waits"}`},
		"topic=nodes&name=node-1":            {200, `{"text":"Node /node-1 waits"}`},
		"topic=pods&namespace=n&name=nosuch": {502, `{"problem":"there is no such thing"}`},
		"topic=pods&namespace=n":             {400, `{"problem":"name: is missing"}`},
		"topic=secrets&namespace=n&name=s":   {400, `{"problem":"topic: \"secrets\" is none that is explained"}`},
		"topic=events&namespace=n&name=e":    {400, `{"problem":"topic: \"events\" is none that is explained"}`},
	} {
		response := s.ask("/api/explain?" + query)
		if text := strings.TrimSpace(s.reads(response)); response.StatusCode != want.status || text != want.text {
			t.Errorf("%s: %d %s, want %d %s", query, response.StatusCode, text, want.status, want.text)
		}
	}
}

func TestAbout(t *testing.T) {
	s := serve(t, fake.NewClientset())
	if text := s.reads(s.ask("/api/about")); !strings.Contains(text, `"namespace":""`) {
		t.Errorf("got %s", text)
	}
}

// Only so many pages are served at the same time; another is told to come later.
func TestPlaces(t *testing.T) {
	s := serve(t, fake.NewClientset())
	for range mostStreams {
		s.console.streams <- struct{}{}
	}
	response := s.ask("/api/stream?topics=pods")
	if response.StatusCode != http.StatusServiceUnavailable || response.Header.Get("Retry-After") == "" {
		t.Errorf("one page too many: %d", response.StatusCode)
	}
	<-s.console.streams
	s.follow("/api/stream?topics=pods")("pods", func(feed.Change) bool { return true })
}

// The page consists of what the console serves, and has no script or style in it that the policy would refuse.
func TestPage(t *testing.T) {
	s := serve(t, fake.NewClientset())
	files, err := fs.Glob(page.Files, "*")
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]string{".html": "text/html", ".css": "text/css", ".js": "/javascript", ".svg": "image/svg+xml"}
	all := ""
	for _, file := range append(files, "") {
		if file == "index.html" {
			continue // which is at /
		}
		response := s.ask("/"+file, func(r *http.Request) { r.Header.Del("Authorization") })
		text := s.reads(response)
		want := kinds[file[max(0, strings.LastIndex(file, ".")):]]
		if file == "" {
			want = kinds[".html"]
			if inline := regexp.MustCompile(`(?i)<script>|<style|\s(style|on\w+)=`).FindString(text); inline != "" {
				t.Errorf("the page has %q", inline)
			}
		}
		kind, _, _ := strings.Cut(response.Header.Get("Content-Type"), ";")
		if response.StatusCode != http.StatusOK || !strings.HasSuffix(kind, want) {
			t.Errorf("/%s: %d, %s", file, response.StatusCode, kind)
		}
		all += text
	}
	names := regexp.MustCompile(`(?:src|href|from) ?=? ?"(?:\./)?([\w.]+\.(?:js|css|svg))"`)
	for _, named := range names.FindAllStringSubmatch(all, -1) {
		if !slices.Contains(files, named[1]) {
			t.Errorf("%s is named and not there", named[1])
		}
	}
	if sink := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|https?://[^w]`).
		FindString(all); sink != "" {
		t.Errorf("a file has %q", sink)
	}
	if response := s.ask("/nosuch"); response.StatusCode != http.StatusNotFound {
		t.Errorf("/nosuch: %d", response.StatusCode)
	}
}

// The console is reached from its own machine alone.
func TestListen(t *testing.T) {
	listener, err := Listen(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	at, err := netip.ParseAddrPort(listener.Addr().String())
	if err != nil || !at.Addr().IsLoopback() {
		t.Errorf("it listens on %s, %v", listener.Addr(), err)
	}
	var taken net.Listener
	if taken, err = Listen(t.Context(), int(at.Port())); err == nil {
		// The port of the other family may be free.
		defer taken.Close()
		if at, err := netip.ParseAddrPort(taken.Addr().String()); err != nil || !at.Addr().IsLoopback() {
			t.Errorf("it listens on %s, %v", taken.Addr(), err)
		}
	}
}
