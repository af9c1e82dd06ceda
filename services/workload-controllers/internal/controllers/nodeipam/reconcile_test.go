package nodeipam

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"keelson.dev/kit/events"
	"keelson.dev/services/workload-controllers/internal/wake"
	"keelson.dev/services/workload-controllers/internal/write"
)

// cached shows Nodes as they were when they were put in.
type cached map[string]*corev1.Node

func (c cached) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	found, ok := c[key.Name]
	if !ok {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "nodes"}, key.Name)
	}
	found.DeepCopyInto(into.(*corev1.Node))
	return nil
}

func (cached) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errors.New("a pass lists nothing")
}

type told []string

func (r *told) Record(_ runtime.Object, e events.Event) { *r = append(*r, e.Reason) }

// lead returns a leader of a new term over an API and a cache of it.
func lead(t *testing.T, api client.Client, cache cached, settings Settings) *Controller {
	t.Helper()
	pools, err := settings.pools()
	if err != nil {
		t.Fatal(err)
	}
	c := &Controller{reader: cache, live: api, writer: &write.Writer{Client: api, Kind: "node"}, recorder: &told{},
		log: zap.NewNop(), ledger: newLedger(pools)}
	if _, err := c.recount(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *Controller) pass(t *testing.T, name string) error {
	t.Helper()
	_, err := c.steps().Reconcile(t.Context(), wake.Request("", name))
	return err
}

func read(t *testing.T, api client.Client, name string) *corev1.Node {
	t.Helper()
	n := &corev1.Node{}
	if err := api.Get(t.Context(), client.ObjectKey{Name: name}, n); err != nil {
		t.Fatal(err)
	}
	return n
}

var errLost = errors.New("the connection broke")

// No range is ever given twice and no Node loses its own, whatever happens to leaders, writes and caches.
func TestNoRangeIsGivenTwice(t *testing.T) {
	for seed := range uint64(24) {
		r := rand.New(rand.NewPCG(seed, 11))
		w := &world{t: t, random: r, cache: cached{}, given: map[types.UID]string{}}
		w.api = fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{Patch: w.patch}).Build()
		w.settings = Settings{ClusterCIDRs: []string{"10.0.0.0/21"}} // eight shares
		if seed%2 == 1 {
			w.settings.ClusterCIDRs = append(w.settings.ClusterCIDRs, "fd00::/60") // sixteen
		}
		w.leader = lead(t, w.api, w.cache, w.settings)
		for range 150 {
			w.step()
			w.check(seed)
		}
		// In the end, with a cache that shows everything, as many Nodes have ranges as there is room for.
		w.calm = true
		for range 3 {
			for i := range 12 {
				w.show(fmt.Sprint("n", i))
				_ = w.leader.pass(t, fmt.Sprint("n", i))
			}
		}
		w.check(seed)
		if have, all := w.served(), len(w.nodes()); have < min(all, 8) {
			t.Fatalf("seed %d: %d of %d Nodes have ranges, and there is room for 8", seed, have, all)
		}
	}
}

type world struct {
	t        *testing.T
	random   *rand.Rand
	api      client.WithWatch
	cache    cached
	settings Settings
	leader   *Controller
	given    map[types.UID]string
	serial   int
	calm     bool
}

// patch is a write that may fail before it arrives, or whose answer may get lost.
func (w *world) patch(ctx context.Context, api client.WithWatch, object client.Object, patch client.Patch,
	options ...client.PatchOption) error {
	fate := w.random.IntN(6)
	if fate == 0 && !w.calm {
		return errLost
	}
	// The server lets ranges be written once, and into the Node that is meant.
	live, wanted := &corev1.Node{}, &corev1.Node{}
	if err := api.Get(ctx, client.ObjectKeyFromObject(object), live); err != nil {
		return err
	}
	data, err := patch.Data(object)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, wanted); err != nil {
		return err
	}
	if wanted.UID != live.UID {
		return apierrors.NewConflict(schema.GroupResource{Resource: "nodes"}, live.Name, errors.New("another UID"))
	}
	if len(live.Spec.PodCIDRs) > 0 && fmt.Sprint(live.Spec.PodCIDRs) != fmt.Sprint(wanted.Spec.PodCIDRs) {
		return apierrors.NewInvalid(schema.GroupKind{Kind: "Node"}, live.Name, nil)
	}
	if err := api.Patch(ctx, object, patch, options...); err != nil {
		return err
	}
	if fate == 1 && !w.calm {
		return errLost
	}
	return nil
}

func (w *world) nodes() []corev1.Node {
	list := &corev1.NodeList{}
	if err := w.api.List(w.t.Context(), list); err != nil {
		w.t.Fatal(err)
	}
	return list.Items
}

// show brings the cache up to date about one Node.
func (w *world) show(name string) {
	live := &corev1.Node{}
	err := w.api.Get(w.t.Context(), client.ObjectKey{Name: name}, live)
	before := w.cache[name]
	if before != nil && (err != nil || before.UID != live.UID) {
		w.leader.ledger.forget(before)
		delete(w.cache, name)
	}
	if err == nil {
		w.cache[name] = live
		w.leader.ledger.observe(live)
	}
}

func (w *world) step() {
	nodes := w.nodes()
	name := ""
	if len(nodes) > 0 {
		name = nodes[w.random.IntN(len(nodes))].Name
	}
	switch w.random.IntN(10) {
	case 0, 1:
		w.serial++
		n := node(fmt.Sprint("n", w.serial%12))
		n.UID = types.UID(fmt.Sprint(w.serial))
		if w.random.IntN(6) == 0 {
			n.Spec.PodCIDR = fmt.Sprintf("172.16.%d.0/24", w.serial)
			n.Spec.PodCIDRs = []string{n.Spec.PodCIDR}
		}
		_ = w.api.Create(w.t.Context(), n) // the name may be taken
	case 2:
		if name != "" && w.api.Delete(w.t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}) != nil {
			w.t.Fatal("a Node cannot be deleted")
		}
	case 3: // the leader dies; the next one's cache is as old as its own
		w.leader = lead(w.t, w.api, w.cache, w.settings)
		for _, old := range w.cache {
			w.leader.ledger.observe(old)
		}
	case 4, 5:
		w.show(fmt.Sprint("n", w.random.IntN(12)))
	default:
		_ = w.leader.pass(w.t, fmt.Sprint("n", w.random.IntN(12)))
	}
}

func (w *world) check(seed uint64) {
	owners := map[string]string{}
	for _, n := range w.nodes() {
		for _, text := range n.Spec.PodCIDRs {
			if other, taken := owners[text]; taken {
				w.t.Fatalf("seed %d: %s has been given to %s and %s", seed, text, other, n.Name)
			}
			owners[text] = n.Name
		}
		if before := w.given[n.UID]; before != "" && before != fmt.Sprint(n.Spec.PodCIDRs) {
			w.t.Fatalf("seed %d: %s had %s and has %v", seed, n.Name, before, n.Spec.PodCIDRs)
		}
		if len(n.Spec.PodCIDRs) > 0 {
			w.given[n.UID] = fmt.Sprint(n.Spec.PodCIDRs)
		}
	}
}

func (w *world) served() int {
	have := 0
	for _, n := range w.nodes() {
		if len(n.Spec.PodCIDRs) > 0 {
			have++
		}
	}
	return have
}

// A Node that waits is served when another is gone, and one sentence in the log says that Nodes wait.
func TestAWaitingNodeIsServed(t *testing.T) {
	core, logs := observer.New(zap.WarnLevel)
	first, second, third := node("a"), node("b"), node("c")
	api := fake.NewClientBuilder().WithObjects(first, second, third).Build()
	c := lead(t, api, cached{"a": first, "b": second, "c": third}, Settings{ClusterCIDRs: []string{"10.0.0.0/24"}})
	c.log = zap.New(core)
	for _, name := range []string{"a", "b", "c", "b"} {
		if err := c.pass(t, name); err != nil {
			t.Fatal(err)
		}
	}
	if text := fmt.Sprint(*c.recorder.(*told)); text != "[CIDRNotAvailable CIDRNotAvailable CIDRNotAvailable]" ||
		logs.Len() != 1 || read(t, api, "b").Spec.PodCIDR != "" {
		t.Fatalf("events %s, %d lines in the log, b has %q", text, logs.Len(), read(t, api, "b").Spec.PodCIDR)
	}
	woken := c.ledger.forget(first)
	if woken != "b" && woken != "c" {
		t.Fatalf("%q is woken up", woken)
	}
	if err := c.pass(t, woken); err != nil || read(t, api, woken).Spec.PodCIDR != "10.0.0.0/24" {
		t.Errorf("%s has %q: %v", woken, read(t, api, woken).Spec.PodCIDR, err)
	}
	if c.ledger.forget(node("stranger")) != "" {
		t.Error("a Node that had nothing wakes another")
	}
}

// A new leader knows what the one before gave, although its cache does not.
func TestANewLeaderReadsWhatWasGiven(t *testing.T) {
	api := fake.NewClientBuilder().WithObjects(node("a", "10.0.0.0/24"), node("b")).Build()
	stale := cached{"a": node("a"), "b": node("b")}
	c := lead(t, api, stale, Settings{ClusterCIDRs: []string{"10.0.0.0/23"}})
	for _, name := range []string{"b", "a"} {
		if err := c.pass(t, name); err != nil {
			t.Fatal(err)
		}
	}
	if a, b := read(t, api, "a").Spec.PodCIDR, read(t, api, "b").Spec.PodCIDR; a != "10.0.0.0/24" ||
		b != "10.0.1.0/24" {
		t.Errorf("a has %q and b has %q", a, b)
	}
}

// What a Node had that is gone, and that the cache has never shown, is given to others.
func TestARangeOfANodeThatTheCacheMissedIsFound(t *testing.T) {
	gone, next := node("gone", "10.0.0.0/24"), node("next")
	api := fake.NewClientBuilder().WithObjects(gone, next).Build()
	c := lead(t, api, cached{"next": next}, Settings{ClusterCIDRs: []string{"10.0.0.0/24"}})
	if err := api.Delete(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := c.pass(t, "next"); err != nil {
			t.Fatal(err)
		}
	}
	if got := read(t, api, "next").Spec.PodCIDR; got != "10.0.0.0/24" {
		t.Errorf("the next Node has %q", got)
	}
}
