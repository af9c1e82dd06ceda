package mesh

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"keelson.dev/cli/internal/discovery"
	"keelson.dev/cli/internal/pki"
	"keelson.dev/cli/internal/plan"
)

// fakeOthers follow everything that is published, unless a test prevents it.
type fakeOthers struct {
	away error
	// told is what was published last, telling how often something else was published.
	told    []string
	telling int
	nodes   []plan.Follower
	// machines are the machines of the control plane.
	machines []string
}

func (f *fakeOthers) reach(context.Context) error { return f.away }

func (f *fakeOthers) controlPlane(context.Context) ([]string, error) { return f.machines, nil }

func (f *fakeOthers) publish(_ context.Context, pins []string) error {
	if !slices.Equal(f.told, pins) {
		f.told = pins
		f.telling++
	}
	return nil
}

func (f *fakeOthers) followers(context.Context) ([]plan.Follower, error) { return f.nodes, nil }

func (b *bed) rotate(t *testing.T, others others, finish bool) error {
	t.Helper()
	m := b.opened(t)
	unlock, err := m.lockKeys()
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	return (&rotation{m, others}).run(t.Context(), finish)
}

func (b *bed) mustRotate(t *testing.T, others others, finish bool) {
	t.Helper()
	if err := b.rotate(t, others, finish); err != nil {
		t.Fatalf("%v\n%s", err, b.out.String())
	}
}

func (b *bed) pins(t *testing.T) []string {
	t.Helper()
	pins, err := (&Mesh{Layout: b.layout}).pins()
	must(t, err)
	return pins
}

// After each step that others have to learn of, all running processes are restarted and the authorities are
// published; the old authority stays until no machine needs it, and a run without a step restarts nothing.
func TestRotateAuthority(t *testing.T) {
	b := newBed(t)
	b.mustInit(t)
	first := b.pins(t)
	others := &fakeOthers{}
	b.mustRotate(t, others, false)
	const everybody = restartFirst + restartRest
	if got, want := strings.Join(b.calls, "\n"), everybody+"\n"+everybody; got != want {
		t.Errorf("systemctl was told\n%s\nwant\n%s", got, want)
	}
	pins := b.pins(t)
	if len(pins) != 2 || pins[1] != first[0] || !slices.Equal(others.told, pins) || others.telling != 3 {
		t.Errorf("trusted are %v, after %v; told was %d times, at last %v", pins, first, others.telling, others.told)
	}
	if said := b.out.String(); !strings.Contains(said, "keel certs rotate-ca --finish takes the old") {
		t.Errorf("it said\n%s", said)
	}
	if care := b.needCare(t); care != "" {
		t.Errorf("there need care\n%s", care)
	}
	must(t, b.answers(t))
	b.mustRotate(t, others, false)
	if len(b.calls) > 0 || !slices.Equal(b.pins(t), pins) {
		t.Errorf("a second run called %v", b.calls)
	}
	b.mustInit(t)
	if len(b.calls) > 0 {
		t.Errorf("keel init has to call %v", b.calls)
	}

	others.nodes = []plan.Follower{{Node: "far", Authority: first[0], Serving: first[0]}}
	err := b.rotate(t, others, true)
	if err == nil || !strings.Contains(err.Error(), "node far does not follow the new authority: run keel join") ||
		len(b.calls) > 0 || !slices.Equal(b.pins(t), pins) {
		t.Errorf("without a node: %v, after %v", err, b.calls)
	}
	others.nodes = []plan.Follower{{Node: "far", Authority: pins[0], Serving: pins[0]}}
	b.mustRotate(t, others, true)
	if got := strings.Join(b.calls, "\n"); got != everybody {
		t.Errorf("finishing, systemctl was told\n%s\nwant\n%s", got, everybody)
	}
	if said := b.out.String(); !strings.Contains(said, "until keel join is run there") {
		t.Errorf("finishing, it said\n%s", said)
	}
	if !slices.Equal(b.pins(t), pins[:1]) || !slices.Equal(others.told, pins[:1]) {
		t.Errorf("in the end %v is trusted, and told was %v", b.pins(t), others.told)
	}
	must(t, b.answers(t))
	b.mustRotate(t, others, true)
	if len(b.calls) > 0 || !strings.Contains(b.out.String(), "nothing is left to finish") {
		t.Errorf("to finish again it called %v and said\n%s", b.calls, b.out.String())
	}
	b.expect(t)
}

// The next run, or keel init before it, resumes a run that is interrupted at any call; so it is with a run that
// finishes.
func TestRotateAuthorityIsCutOff(t *testing.T) {
	for call := 1; ; call++ {
		cuts := 0
		for _, after := range []bool{false, true} {
			for _, finish := range []bool{false, true} {
				b := newBed(t)
				b.mustInit(t)
				first := b.pins(t)
				others := &fakeOthers{}
				if finish {
					b.mustRotate(t, others, false)
				}
				if b.cutAt(t, call, after, func(t *testing.T) error { return b.rotate(t, others, finish) }) {
					cuts++
				}
				if call%2 == 0 {
					b.mustInit(t)
				}
				if !finish {
					b.mustRotate(t, others, false)
				}
				b.mustRotate(t, others, true)
				if pins := b.pins(t); len(pins) != 1 || pins[0] == first[0] || !slices.Equal(others.told, pins) {
					t.Errorf("call %d, done %t: trusted are %v after %v, told was %v", call, after, pins, first,
						others.told)
				}
				if care := b.needCare(t); care != "" {
					t.Errorf("call %d, done %t: there need care\n%s", call, after, care)
				}
				must(t, b.answers(t))
				b.expect(t)
			}
		}
		if cuts == 0 {
			if call < 7 {
				t.Errorf("it has %d calls only", call-1)
			}
			return
		}
	}
}

// A rotation that cannot go on is not begun.
func TestRotateAuthorityRefuses(t *testing.T) {
	for name, row := range map[string]struct {
		change func(*testing.T, *bed, *fakeOthers)
		want   string
	}{
		"another machine has the key": {func(_ *testing.T, _ *bed, o *fakeOthers) {
			o.machines = []string{"192.168.0.1", "192.168.0.2"}
		}, "the control plane has 2 machines (192.168.0.1, 192.168.0.2), and rotate-ca"},
		"nobody answers": {func(_ *testing.T, _ *bed, o *fakeOthers) { o.away = errors.New("connection refused") },
			"has to run while its authority is replaced (keel init starts it): connection refused"},
		"no key": {func(t *testing.T, b *bed, _ *fakeOthers) { must(t, os.Remove(b.layout.PKI("ca.key"))) },
			"reading the authority's key"},
		"somebody's bundle": {func(t *testing.T, b *bed, _ *fakeOthers) {
			content, err := os.ReadFile(b.layout.PKI("ca.crt"))
			must(t, err)
			must(t, os.WriteFile(b.layout.PKI("ca.crt"), slices.Repeat(content, 2), 0o600))
		}, "no rotation has put them there"},
	} {
		b, others := newBed(t), &fakeOthers{}
		b.mustInit(t)
		row.change(t, b, others)
		before := tree(t, b.layout.Dir)
		if err := b.rotate(t, others, false); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v, want %s", name, err, row.want)
		}
		if after := tree(t, b.layout.Dir); after != before || len(b.calls) > 0 {
			t.Errorf("%s: it changed\n%s\nto\n%s\nand called %v", name, before, after, b.calls)
		}
	}
}

// advance brings the authority of the mesh that machines join to its next state.
func (f *fakeAPI) advance(t *testing.T, finish bool) {
	t.Helper()
	f.change(func() {
		for {
			have, err := pki.Authorities(f.layout)
			must(t, err)
			step, err := plan.DecideRotation(have, finish)
			must(t, err)
			if step == plan.RotationRest {
				break
			}
			must(t, pki.Rotate(f.layout, step, time.Now()))
		}
		_, err := pki.Ensure(f.layout, fakeAPICertificates, time.Now())
		must(t, err)
		pair, err := tls.LoadX509KeyPair(f.layout.PKI("apiserver.crt"), f.layout.PKI("apiserver.key"))
		must(t, err)
		f.shown.Store(&pair)
	})
}

// keel join without arguments makes a worker follow, during the rotation and after it, and report that to the
// mesh; its agent is restarted once. It does not follow a server that merely claims to be the mesh.
func TestAWorkerFollowsTheAuthority(t *testing.T) {
	for _, late := range []bool{false, true} {
		b := newJoinBed(t)
		b.mustJoin(t)
		b.options.Join = &Joining{}
		follow := func(when string) {
			t.Helper()
			b.mustJoin(t)
			if want := []string{"daemon-reload", "restart keelson-nodeagent.service"}; !slices.Equal(b.calls, want) {
				t.Errorf("%s: systemctl was told %v, want %v", when, b.calls, want)
			}
			own, err := os.ReadFile(b.layout.PKI("ca.crt"))
			must(t, err)
			kubeconfig, err := os.ReadFile(b.layout.Node("vm").Kubeconfig())
			must(t, err)
			if string(own) != string(b.api.authority(t)) ||
				!strings.Contains(string(kubeconfig), base64.StdEncoding.EncodeToString(own)) {
				t.Errorf("%s: it trusts\n%s\nby\n%s", when, own, kubeconfig)
			}
			pins, err := discovery.PinsOf(own)
			must(t, err)
			want := fmt.Sprintf(`{"metadata":{"annotations":{"keelson.dev/authority":%q}}}`, pins[0])
			if got := b.api.patched(); got != want {
				t.Errorf("%s: of its node it says %s, want %s", when, got, want)
			}
			b.mustJoin(t)
			if len(b.calls) > 0 {
				t.Errorf("%s, again: systemctl was told %v", when, b.calls)
			}
		}
		b.api.advance(t, false)
		if !late {
			follow("during the rotation")
		}
		b.api.advance(t, true)
		follow("after the rotation")
	}
}

// A worker does not follow a server without a certificate of an authority that it trusts, and keeps running.
func TestAWorkerFollowsNobodyElse(t *testing.T) {
	b := newJoinBed(t)
	b.mustJoin(t)
	before, err := os.ReadFile(b.layout.PKI("ca.crt"))
	must(t, err)
	other := newFakeAPI(t)
	w := &worker{Mesh: b.opened(t)}
	w.State.Server = other.URL
	must(t, w.follow(t.Context(), true))
	if string(w.trusts) != string(before) || !strings.Contains(b.out.String(), "this machine keeps its authority") {
		t.Errorf("it trusts %s and said\n%s", w.trusts, b.out.String())
	}
}
