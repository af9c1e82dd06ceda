package extenderclient

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	schedulerv1 "k8s.io/kube-scheduler/config/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"keelson.dev/services/scheduler/internal/bind"
	"keelson.dev/services/scheduler/internal/extender"
)

// service is an extender: it answers by verb, and notes what it was asked.
type service struct {
	*httptest.Server
	answers map[string]func(http.ResponseWriter, []byte)

	mu    sync.Mutex // an answer that is cut off orders nothing
	verbs []string
	args  extenderv1.ExtenderArgs // of the last call
}

func newService(t *testing.T) *service {
	s := &service{answers: map[string]func(http.ResponseWriter, []byte){}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		verb := strings.TrimPrefix(r.URL.Path, "/x/")
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("asked by %s %v: %v", r.Method, r.Header, err)
		}
		var args extenderv1.ExtenderArgs
		if err := json.Unmarshal(body, &args); err != nil {
			t.Error(err)
		}
		s.note(verb, args)
		s.answers[verb](w, body)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *service) note(verb string, args extenderv1.ExtenderArgs) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.verbs, s.args = append(s.verbs, verb), args
}

// asked returns the verbs of all calls, and the arguments of the last one.
func (s *service) asked() ([]string, extenderv1.ExtenderArgs) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.verbs), s.args
}

// says makes the service answer a verb with this text.
func (s *service) says(verb, text string) *service {
	s.answers[verb] = func(w http.ResponseWriter, _ []byte) { fmt.Fprint(w, text) }
	return s
}

func (s *service) extender(change func(*schedulerv1.Extender)) schedulerv1.Extender {
	e := schedulerv1.Extender{URLPrefix: s.URL + "/x/", HTTPTimeout: metav1.Duration{Duration: 10 * time.Second},
		Weight:           1,
		NodeCacheCapable: true}
	change(&e)
	return e
}

func filtering(e *schedulerv1.Extender) { e.FilterVerb = "filter" }

// asker returns an Asker whose API server knows Pod p, of which the scheduler keeps less.
func asker(extenders ...schedulerv1.Extender) *Asker {
	api := fake.NewClientset(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "1",
		Annotations: map[string]string{"whole": "yes"}}})
	clients := make([]*http.Client, len(extenders))
	for i := range clients {
		clients[i] = &http.Client{}
	}
	nodes := func(name string) *corev1.Node {
		if name == "gone" {
			return nil
		}
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"whole": "yes"}}}
	}
	return New(extenders, clients, api.CoreV1(), nodes, &bind.Terms{}, zap.NewNop())
}

func question(nodes ...string) *extender.Question {
	return &extender.Question{Pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "1"}},
		Extenders: []int{0}, Nodes: nodes}
}

func ask(a *Asker, q *extender.Question) extender.Answer {
	answers := make(chan extender.Answer)
	a.Ask(context.Background(), q, func(a extender.Answer) { answers <- a })
	return <-answers
}

type breaks struct{}

func (breaks) RoundTrip(*http.Request) (*http.Response, error) { panic("no such case") }

// A call that breaks off is an answer too: the Pod waits for it.
func TestCallBreaksOff(t *testing.T) {
	a := asker(newService(t).extender(filtering))
	a.clients[0] = &http.Client{Transport: breaks{}}
	if got := ask(a, question("a")); got.Err == nil || !strings.Contains(got.Err.Error(), "no such case") {
		t.Errorf("%+v", got)
	}
}

// Each extender is asked about what the one before left; scores add up, by weight.
func TestTwoExtenders(t *testing.T) {
	first := newService(t).says("filter", `{"nodenames": ["a", "b"], "failedNodes": {"c": "no gpu"}}`).
		says("prioritize", `[{"host": "b", "score": 1}]`)
	second := newService(t).says("only", `{"Nodes": {"items": [{"metadata": {"name": "b"}}]}}`).
		says("score", `[{"Host": "b", "Score": 10}]`)
	a := asker(first.extender(func(e *schedulerv1.Extender) {
		e.FilterVerb, e.PrioritizeVerb = "filter",
			"prioritize"
	}),
		second.extender(func(e *schedulerv1.Extender) {
			e.FilterVerb, e.PrioritizeVerb, e.Weight, e.NodeCacheCapable = "only", "/score", 2, false
		}))
	q := question("a", "b", "c")
	q.Extenders = []int{0, 1}
	answer := ask(a, q)
	if answer.Err != nil || !slices.Equal(answer.Left, []string{"b"}) || !maps.Equal(answer.Scores, map[string]int64{
		"b": 10 + 200}) || !maps.Equal(answer.Failed, map[string]string{"a": "node(s) were refused by an extender",
		"c": "no gpu"}) {
		t.Errorf("answer is %+v", answer)
	}
	verbs, p := first.asked()
	if !slices.Equal(verbs, []string{"filter", "prioritize"}) {
		t.Errorf("the first is asked %q", verbs)
	}
	if p.Pod.Annotations["whole"] != "yes" || p.Nodes != nil || len(*p.NodeNames) != 1 {
		t.Errorf("told of Pod %v and nodes %v, %v", p.Pod, p.Nodes, p.NodeNames)
	}
	verbs, p = second.asked()
	if !slices.Equal(verbs, []string{"only", "score"}) {
		t.Errorf("the second is asked %q", verbs)
	}
	if p.NodeNames != nil || len(p.Nodes.Items) != 1 || p.Nodes.Items[0].Labels["whole"] != "yes" {
		t.Errorf("told of %v, %v", p.Nodes, p.NodeNames)
	}
}

// A node that is gone is not sent, and so not left.
func TestGoneNode(t *testing.T) {
	s := newService(t).says("filter", `{"nodes": {"items": [{"metadata": {"name": "a"}}]}}`)
	a := asker(s.extender(func(e *schedulerv1.Extender) { e.FilterVerb, e.NodeCacheCapable = "filter", false }))
	if answer := ask(a, question("gone", "a")); answer.Err != nil || !slices.Equal(answer.Left, []string{"a"}) {
		t.Errorf("answer is %+v", answer)
	}
}

// An answer of no use is one clear sentence; an extender that may be ignored is.
func TestUselessAnswers(t *testing.T) {
	const timeout = 200 * time.Millisecond
	for name, test := range map[string]struct {
		answer func(w http.ResponseWriter, body []byte)
		want   string
	}{
		"a node of its own": {func(w http.ResponseWriter, _ []byte) { fmt.Fprint(w, `{"NodeNames": ["zz"]}`) },
			`it names node "zz", about which it was not asked`},
		"its own error": {func(w http.ResponseWriter, _ []byte) { fmt.Fprint(w, `{"Error": "broken"}`) },
			"it says: broken"},
		"no JSON": {func(w http.ResponseWriter, _ []byte) { fmt.Fprint(w, `<html>`) },
			"its answer cannot be read: invalid character '<' looking for beginning of value"},
		"another type": {func(w http.ResponseWriter, _ []byte) { fmt.Fprint(w, `{"NodeNames": 7}`) },
			"its answer cannot be read: json: cannot unmarshal number into Go struct field " +
				"ExtenderFilterResult.NodeNames of type []string"},
		"500": {func(w http.ResponseWriter, _ []byte) { w.WriteHeader(500) }, "it answers 500 Internal Server Error"},
		"a redirection": {func(w http.ResponseWriter, _ []byte) {
			w.Header().Set("Location", "/x/filter")
			w.WriteHeader(http.StatusTemporaryRedirect)
		}, "it answers 307 Temporary Redirect"},
		"it closes": {func(http.ResponseWriter, []byte) { panic(http.ErrAbortHandler) }, "EOF"},
		"100 MB": {func(w http.ResponseWriter, _ []byte) {
			chunk := bytes.Repeat([]byte(" "), 1<<20)
			for range 100 {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		}, "its answer is longer than 32 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newService(t)
			s.answers["filter"] = test.answer
			strict := asker(s.extender(filtering))
			strict.clients[0].CheckRedirect = func(*http.Request,
				[]*http.Request) error {
				return http.ErrUseLastResponse
			}
			want := "extender " + s.URL + "/x/ failed to filter: " + test.want
			if answer := ask(strict, question("a")); answer.Err == nil || answer.Err.Error() != want {
				t.Errorf("error %v, want %s", answer.Err, want)
			}
			lax := asker(s.extender(func(e *schedulerv1.Extender) { e.FilterVerb, e.Ignorable = "filter", true }))
			lax.clients[0].CheckRedirect = strict.clients[0].CheckRedirect
			if answer := ask(lax, question("a")); answer.Err != nil || !slices.Equal(answer.Left, []string{"a"}) {
				t.Errorf("ignored: %+v", answer)
			}
		})
	}
	t.Run("it hangs", func(t *testing.T) {
		s, done := newService(t), make(chan struct{})
		s.answers["filter"] = func(http.ResponseWriter, []byte) { <-done }
		e := s.extender(filtering)
		e.HTTPTimeout.Duration = timeout
		want := "extender " + s.URL + "/x/ failed to filter: no answer within 200ms: context deadline exceeded"
		if answer := ask(asker(e), question("a")); answer.Err == nil || answer.Err.Error() != want {
			t.Errorf("error %v, want %s", answer.Err, want)
		}
		close(done)
	})
	t.Run("nobody", func(t *testing.T) {
		s := newService(t)
		s.Close()
		if answer := ask(asker(s.extender(filtering)), question("a")); answer.Err == nil ||
			!strings.Contains(answer.Err.Error(), "connection refused") || strings.Contains(answer.Err.Error(),
			"Post") {
			t.Errorf("error %v", answer.Err)
		}
	})
}

// As the API says, scores of no use are left out, and the Pod goes on.
func TestUselessScores(t *testing.T) {
	for _, says := range []string{`[{"Host": "a", "Score": -1}]`, `[{"Host": "a", "Score": 9223372036854775807}]`,
		`[{"Host": "zz", "Score": 1}]`, `{}`} {
		s := newService(t).says("score", says)
		a := asker(s.extender(func(e *schedulerv1.Extender) { e.PrioritizeVerb = "score" }))
		if answer := ask(a, question("a")); answer.Err != nil || len(answer.Scores) > 0 || len(answer.Left) != 1 {
			t.Errorf("%s: answer is %+v", says, answer)
		}
	}
}

// The client does not ask about a Pod that was recreated under its name.
func TestOtherPod(t *testing.T) {
	s := newService(t)
	q := question("a")
	q.Pod.UID = "2"
	answer := ask(asker(s.extender(filtering)), q)
	if verbs, _ := s.asked(); answer.Err == nil || len(verbs) > 0 {
		t.Errorf("answer is %+v, asked %q", answer, verbs)
	}
}

// Over the connections of Clients only a leader asks.
func TestOnlyALeaderAsks(t *testing.T) {
	s := newService(t).says("filter", `{"NodeNames": ["a"]}`)
	a := asker(s.extender(filtering))
	var err error
	if a.clients, err = Clients(a.extenders); err != nil {
		t.Fatal(err)
	}
	answer := ask(a, question("a"))
	verbs, _ := s.asked()
	if answer.Err == nil || !strings.Contains(answer.Err.Error(), "not leading") || len(verbs) > 0 {
		t.Errorf("answer is %+v, asked %q", answer, verbs)
	}
}

// The plans that an extender leaves, with the victims that it chooses, go to the next.
func TestPlans(t *testing.T) {
	first := newService(t).says("preempt", `{"NodeNameToMetaVictims": {"a": {"Pods": [{"UID": "2"}]}}}`)
	second := newService(t)
	var told extenderv1.ExtenderPreemptionArgs
	second.answers["preempt"] = func(w http.ResponseWriter, body []byte) {
		if err := json.Unmarshal(body, &told); err != nil {
			t.Error(err)
		}
		fmt.Fprint(w, `{"NodeNameToMetaVictims": {"a": {"Pods": [{"UID": "2"}]}}}`)
	}
	preempting := func(e *schedulerv1.Extender) { e.PreemptVerb = "preempt" }
	a := asker(first.extender(preempting), second.extender(preempting))
	a.extenders[1].NodeCacheCapable = false
	victims := []*corev1.Pod{{ObjectMeta: metav1.ObjectMeta{UID: "2"}}, {ObjectMeta: metav1.ObjectMeta{UID: "3"}}}
	q := question()
	q.Extenders, q.Plans = []int{0, 1}, map[string]extender.Victims{"a": {Pods: victims, Violations: 1},
		"b": {Pods: victims}}
	answer := ask(a, q)
	if answer.Err != nil || len(answer.Plans) != 1 || len(answer.Plans["a"]) != 1 || answer.Plans["a"][0] != "2" {
		t.Errorf("answer is %+v", answer)
	}
	if at := told.NodeNameToVictims["a"]; len(told.NodeNameToVictims) != 1 || told.NodeNameToMetaVictims != nil ||
		len(at.Pods) != 1 || at.Pods[0].UID != "2" || at.NumPDBViolations != 1 {
		t.Errorf("told %+v", told)
	}
	first.says("preempt", `{"NodeNameToMetaVictims": {"c": {}}}`)
	if answer := ask(a, q); answer.Err == nil {
		t.Errorf("answer is %+v", answer)
	}
}
