package serviceproxy

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"keelson.dev/kit/nettest"
	"keelson.dev/services/nodeagent/internal/serviceproxy/health"
	"keelson.dev/services/nodeagent/internal/serviceproxy/plan"
)

// said is the answer that load balancers get at a path.
type said struct {
	code                     int
	LastUpdated, CurrentTime time.Time
	NodeEligible             *bool
}

func (p *proxy) said(path string) said {
	p.t.Helper()
	recorder := httptest.NewRecorder()
	p.freshness.Handler().ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, path, nil))
	out := said{code: recorder.Code}
	if err := json.Unmarshal(recorder.Body.Bytes(), &out); err != nil && recorder.Code != http.StatusNotFound {
		p.t.Errorf("%s: %v in %s", path, err, recorder.Body)
	}
	return out
}

// codes are the answers about the node, and about the agent alone.
func (p *proxy) codes() []int { return []int{p.said("/healthz").code, p.said("/livez").code} }

// A node takes new connections once its rules are in the kernel, until it is about to leave.
func TestWhatLoadBalancersAreTold(t *testing.T) {
	nettest.Own(t)
	p := newProxy(t, "keelson-test-services")
	expect := func(when string, want ...int) {
		t.Helper()
		if got := p.codes(); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", when, got, want)
		}
	}
	expect("before there are rules", 503, 503)
	p.put(newService())
	expect("with rules", 200, 200)
	if got := p.said("/healthz"); got.NodeEligible == nil || !*got.NodeEligible ||
		got.LastUpdated != got.CurrentTime || time.Since(got.CurrentTime) > time.Minute {
		t.Errorf("with rules: %+v", got)
	}
	if got := p.said("/livez"); got.NodeEligible != nil {
		t.Errorf("the agent alone: %+v", got)
	}
	p.SetLeaving(true)
	expect("on its way out", 503, 200)
	if got := p.said("/healthz"); got.NodeEligible == nil || *got.NodeEligible {
		t.Errorf("on its way out: %+v", got)
	}
	p.SetLeaving(false)
	expect("staying after all", 200, 200)
	if got := p.said("/else").code; got != http.StatusNotFound {
		t.Errorf("/else: %d", got)
	}
}

// A change that waits too long makes the node unfit, also for Services that check the node's endpoints.
func TestStaleRulesAreTold(t *testing.T) {
	nettest.Own(t)
	p := newProxy(t, "keelson-test-services")
	p.put(newService())
	service := health.NewServiceHandler("ns/web", p.freshness)
	service.SetReadyEndpoints(2)
	ofService := func() int {
		recorder := httptest.NewRecorder()
		service.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/", nil))
		return recorder.Code
	}
	if got := append(p.codes(), ofService()); !slices.Equal(got, []int{200, 200, 200}) {
		t.Errorf("with rules: %v", got)
	}
	p.freshness.Queued(time.Now().Add(-2 * time.Minute))
	p.changed("ns/web") // one more does not make the first one younger
	if got := append(p.codes(), ofService()); !slices.Equal(got, []int{503, 503, 503}) {
		t.Errorf("two minutes behind: %v", got)
	}
	p.sync()
	if got := append(p.codes(), ofService()); !slices.Equal(got, []int{200, 200, 200}) {
		t.Errorf("up to date again: %v", got)
	}
}

// An agent that starts counts as healthy if an earlier one has left its rules, and each kind of change counts.
func TestWhatCountsAsBehind(t *testing.T) {
	nettest.Own(t)
	newProxy(t, "keelson-test-services").put(newService())
	p := newProxy(t, "keelson-test-services")
	for name, change := range map[string]func(){
		"a change of the node":    func() { p.SetNode(plan.Node{Name: "here", Zone: name()}) },
		"a change of a Service":   func() { p.changed("ns/web") },
		"a table that is not his": func() { _ = p.kernel.Remove(); p.verifyTable() },
		"rules of an agent before": func() {
			*p.freshness = health.Freshness{}
			p.freshness.Found(time.Now())
		},
	} {
		p.sync()
		p.freshness.Written(time.Now(), time.Time{})
		if got := p.freshness.Progress(); !got.PendingSince.IsZero() {
			t.Errorf("%s: behind before", name)
		}
		change()
		if got := p.freshness.Progress(); got.PendingSince.IsZero() || !got.Programmed {
			t.Errorf("%s does not count: %+v", name, got)
		}
	}
}

// name returns another name each time.
func name() string { return time.Now().String() }
