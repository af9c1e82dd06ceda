package daemonset

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientsetfake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"keelson.dev/kit/events/eventstest"
	"keelson.dev/services/workload-controllers/internal/controllerrevision"
	"keelson.dev/services/workload-controllers/internal/gate"
	"keelson.dev/services/workload-controllers/internal/ownerindex"
	"keelson.dev/services/workload-controllers/internal/podfeed"
	"keelson.dev/services/workload-controllers/internal/podfeed/podfeedtest"
	"keelson.dev/services/workload-controllers/internal/podops"
	"keelson.dev/services/workload-controllers/internal/podset"
	"keelson.dev/services/workload-controllers/internal/wake"
	"keelson.dev/services/workload-controllers/internal/write"
)

// bench is a Controller over an API in memory. Pods come through an informer; the cache of all else is up to date.
type bench struct {
	t          *testing.T
	server     client.WithWatch
	pods       *clientsetfake.Clientset
	revisions  toolscache.Indexer
	events     eventstest.Recorded
	controller *Controller
	refusal    error
}

func newBench(t *testing.T, set *appsv1.DaemonSet, pods ...runtime.Object) *bench {
	b := &bench{t: t, pods: clientsetfake.NewClientset(pods...)}
	b.revisions = toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, toolscache.Indexers{})
	upToDate := toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, toolscache.Indexers{})
	if err := upToDate.Replace(nil, "1000000"); err != nil {
		t.Fatal(err)
	}
	b.server = fake.NewClientBuilder().WithObjects(set).WithStatusSubresource(set).WithInterceptorFuncs(
		b.followRevisions()).Build()
	index, err := ownerindex.Of[*appsv1.ControllerRevision](b.revisions)
	if err != nil {
		t.Fatal(err)
	}
	serial := len(pods)
	b.pods.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		serial++
		pod := action.(clienttesting.CreateAction).GetObject().(*corev1.Pod)
		pod.Name, pod.UID, pod.ResourceVersion = fmt.Sprint(pod.GenerateName, serial),
			types.UID(fmt.Sprint("pod-", serial)), fmt.Sprint(1000+serial)
		return b.refusal != nil, nil, b.refusal
	})
	feed := podfeed.New()
	podfeedtest.Connect(t, feed, b.pods)
	pending := gate.New()
	b.controller = &Controller{
		client: b.server, live: b.server, revisions: index, placement: NewPlacement(), pods: feed.Index, gate: pending,
		present: feed.Index.Register(present), owners: wake.NewOwners(kind), recorder: &b.events, now: time.Now,
		writer: &write.Writer{Client: b.server, Kind: "daemonset", Gate: pending, Store: upToDate},
		history: &controllerrevision.Writer{Live: b.server, Write: &write.Writer{Client: b.server,
			Kind: "controllerrevision", Gate: pending, Store: b.revisions}},
		ops: &podops.Operator{Client: b.pods.CoreV1(), FieldManager: "daemonset", Gate: pending, Feed: feed,
			Log: zap.NewNop()},
		memory: map[types.UID]memory{},
	}
	return b
}

// followRevisions shows the cache what is written of ControllerRevisions.
func (b *bench) followRevisions() interceptor.Funcs {
	show := func(object client.Object, err error) error {
		if revision, ok := object.(*appsv1.ControllerRevision); ok && err == nil {
			return b.revisions.Update(revision.DeepCopy())
		}
		return err
	}
	return interceptor.Funcs{
		Create: func(ctx context.Context, under client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			o.SetUID(types.UID(o.GetName()))
			return show(o, under.Create(ctx, o, opts...))
		},
		Update: func(ctx context.Context, under client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			return show(o, under.Update(ctx, o, opts...))
		},
		Delete: func(ctx context.Context, under client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			_ = b.revisions.Delete(o)
			return under.Delete(ctx, o, opts...)
		},
	}
}

func (b *bench) pass() (time.Duration, error) {
	result, err := b.controller.steps().Reconcile(b.t.Context(), wake.Request("default", "agent"))
	synctest.Wait()
	return result.RequeueAfter, err
}

// settle reconciles as often as the results ask for, in the time of the test's bubble, and lets Pods get ready and
// end.
func (b *bench) settle() {
	b.t.Helper()
	for range 20 {
		after, err := b.pass()
		if err != nil {
			b.t.Fatal(err)
		}
		<-time.After(after)
		for _, pod := range b.list() {
			if len(pod.Status.Conditions) > 0 {
				continue
			}
			pod.Spec.NodeName, pod.Status.Phase = nodeOf(&pod), corev1.PodRunning
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue,
				LastTransitionTime: metav1.Now()}}
			pod.ResourceVersion = "5000"
			if _, err := b.pods.CoreV1().Pods("default").Update(b.t.Context(), &pod,
				metav1.UpdateOptions{}); err != nil {
				b.t.Fatal(err)
			}
		}
		synctest.Wait()
	}
}

func (b *bench) list() []corev1.Pod {
	b.t.Helper()
	list, err := b.pods.CoreV1().Pods("default").List(b.t.Context(), metav1.ListOptions{})
	if err != nil {
		b.t.Fatal(err)
	}
	return list.Items
}

// where names the nodes of the DaemonSet's Pods with the Pods' images.
func (b *bench) where() string {
	b.t.Helper()
	var all []string
	for _, pod := range b.list() {
		if owner := metav1.GetControllerOf(&pod); owner != nil && owner.UID == "agent-uid" {
			all = append(all, nodeOf(&pod)+" "+pod.Spec.Containers[0].Image)
		}
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

func (b *bench) expect(want string) {
	b.t.Helper()
	if got := b.where(); got != want {
		b.t.Errorf("Pods %s; want %s", got, want)
	}
}

func (b *bench) edit(change func(*appsv1.DaemonSet)) {
	b.t.Helper()
	set := b.set()
	change(set)
	set.Generation++
	if err := b.server.Update(b.t.Context(), set); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) set() *appsv1.DaemonSet {
	b.t.Helper()
	set := &appsv1.DaemonSet{}
	if err := b.server.Get(b.t.Context(), client.ObjectKey{Namespace: "default", Name: "agent"}, set); err != nil {
		b.t.Fatal(err)
	}
	return set
}

// SET-114, SET-129, SET-152, SET-156, SET-159: Pods come and go with nodes, labels and templates, and users hear of
// it.
func TestAWholeLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, newSet())
		b.controller.placement.Put(newNode("n1"))
		b.controller.placement.Put(newNode("n2"))
		b.settle()
		b.expect("n1 agent:2, n2 agent:2")
		if want := (eventstest.Recorded{"Normal SuccessfulCreate Created pod: agent-1",
			"Normal SuccessfulCreate Created pod: agent-2"}); !slices.Equal(slices.Sorted(slices.Values(b.events)),
			want) {
			t.Errorf("events %q", b.events)
		}
		if s := b.set().Status; s.NumberAvailable != 2 || s.ObservedGeneration != 3 || s.UpdatedNumberScheduled != 2 {
			t.Errorf("status %+v", s)
		}
		b.controller.placement.Put(newNode("n3"))
		b.settle()
		b.expect("n1 agent:2, n2 agent:2, n3 agent:2")

		b.edit(func(set *appsv1.DaemonSet) { set.Spec.Template = newTemplate("agent:3") })
		b.settle()
		b.expect("n1 agent:3, n2 agent:3, n3 agent:3")
		b.edit(func(set *appsv1.DaemonSet) { set.Spec.Template = newTemplate("agent:2") })
		b.settle()
		b.expect("n1 agent:2, n2 agent:2, n3 agent:2")
		var numbers []int64
		for _, item := range b.revisions.List() {
			numbers = append(numbers, item.(*appsv1.ControllerRevision).Revision)
		}
		if slices.Sort(numbers); !slices.Equal(numbers, []int64{2, 3}) {
			t.Errorf("revisions %v", numbers)
		}

		b.events = nil
		b.edit(func(set *appsv1.DaemonSet) { set.Spec.Template.Spec.NodeName = "n2" })
		b.settle()
		b.expect("n2 agent:2")
		if !slices.ContainsFunc(b.events, func(e string) bool {
			return strings.HasPrefix(e, "Normal SuccessfulDelete Deleted pod: agent-")
		}) {
			t.Errorf("events %q", b.events)
		}
	})
}

// SET-155: Pods and history that a DaemonSet left behind are the next one's.
func TestWhatWasLeftIsAdopted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		orphaned := func(pod *corev1.Pod) {
			pod.OwnerReferences, pod.ResourceVersion, pod.Spec.Containers = nil, "1",
				newTemplate("agent:2").Spec.Containers
		}
		b := newBench(t, newSet(), newPod("left", "n1", "agent:2", orphaned))
		b.controller.placement.Put(newNode("n1"))
		left := revisionOf("agent:2", 4)
		left.OwnerReferences, left.ResourceVersion = nil, ""
		if err := b.server.Create(t.Context(), left); err != nil {
			t.Fatal(err)
		}
		if err := b.revisions.Update(left); err != nil {
			t.Fatal(err)
		}
		b.settle()
		b.expect("n1 agent:2")
		if pods := b.list(); len(pods) != 1 || pods[0].Name != "left" {
			t.Errorf("Pods %v", pods)
		}
		revision := &appsv1.ControllerRevision{}
		if err := b.server.Get(t.Context(), client.ObjectKeyFromObject(left), revision); err != nil ||
			!metav1.IsControlledBy(revision, b.set()) {
			t.Errorf("revision %+v, %v", revision, err)
		}
	})
}

// A pass that does not see its own Pods yet would make them again.
func TestOwnPodsAreAwaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, newSet())
		b.controller.placement.Put(newNode("n1"))
		b.controller.gate.Await("agent-uid", "unseen", func() bool { return false })
		if after, err := b.pass(); err != nil || after != time.Second || len(b.list()) > 0 {
			t.Errorf("again in %v, %v, %d Pods", after, err, len(b.list()))
		}
	})
}

// A refusal is told and tried again.
func TestRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, newSet())
		b.controller.placement.Put(newNode("n1"))
		b.refusal = apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "agent-",
			errors.New("exceeded quota"))
		var err error
		for range 3 {
			_, err = b.pass()
			<-time.After(time.Second)
		}
		if !apierrors.IsForbidden(err) || b.set().Status.DesiredNumberScheduled != 1 {
			t.Errorf("%v, status %+v", err, b.set().Status)
		}
		const want = `Warning FailedCreate Error creating: pods "agent-" is forbidden: exceeded quota`
		if !slices.Contains(b.events, want) {
			t.Errorf("events %q", b.events)
		}
		b.refusal = nil
		b.settle()
		b.expect("n1 agent:2")
	})
}

// A Pod that its node refuses is replaced ever later.
func TestRefusedPodsAreReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, newSet())
		b.controller.placement.Put(newNode("n1"))
		replaced := 0
		last := ""
		for start := time.Now(); time.Since(start) < time.Minute; {
			after, err := b.pass()
			if err != nil {
				t.Fatal(err)
			}
			<-time.After(min(max(after, 100*time.Millisecond), time.Second))
			for _, pod := range b.list() {
				if pod.Name != last {
					last = pod.Name
					replaced++
				}
				if pod.Status.Phase != corev1.PodFailed {
					pod.Status.Phase, pod.ResourceVersion = corev1.PodFailed, "5000"
					if _, err := b.pods.CoreV1().Pods("default").Update(t.Context(), &pod,
						metav1.UpdateOptions{}); err != nil {
						t.Fatal(err)
					}
				}
			}
			synctest.Wait()
		}
		// At about 0, 1, 3, 7, 15 and 31 seconds.
		if replaced < 5 || replaced > 8 {
			t.Errorf("%d Pods in a minute", replaced)
		}
	})
}

// Another object may have the name of a revision: the next name is tried.
func TestRevisionNamesCollide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, newSet())
		b.controller.placement.Put(newNode("n1"))
		foreign := revisionOf("agent:2", 1)
		foreign.OwnerReferences[0].UID, foreign.ResourceVersion = "other", ""
		if err := b.server.Create(t.Context(), foreign); err != nil {
			t.Fatal(err)
		}
		b.settle()
		b.expect("n1 agent:2")
		if count := b.set().Status.CollisionCount; count == nil || *count != 1 {
			t.Errorf("collision count %v", count)
		}
	})
}

// The more nodes a pass has to look at, the longer a change of a Pod waits for others: 20 microseconds for each, at
// most 200 milliseconds.
func TestPassesOverManyNodesAreFew(t *testing.T) {
	c := &Controller{memory: map[types.UID]memory{"few": {nodes: 10}, "many": {nodes: 9_999}, "more": {nodes: 10_001}}}
	of := func(uid types.UID) *metav1.OwnerReference { return &metav1.OwnerReference{UID: uid} }
	for _, row := range []struct {
		change podset.Change
		want   time.Duration
	}{
		{podset.Change{}, 0},
		{podset.Change{After: of("unknown")}, 0},
		{podset.Change{After: of("few")}, 200 * time.Microsecond},
		{podset.Change{Before: of("many"), After: of("few")}, 199_980 * time.Microsecond},
		{podset.Change{Before: of("more")}, 200 * time.Millisecond},
	} {
		if got := c.delay(row.change); got != row.want {
			t.Errorf("%+v waits %v, want %v", row.change, got, row.want)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, newSet())
		b.controller.placement.Put(newNode("n1"))
		b.settle()
		if got := b.controller.delay(podset.Change{After: of("agent-uid")}); got != 20*time.Microsecond {
			t.Errorf("with one node it waits %v", got)
		}
	})
}

func TestWhatIsForgotten(t *testing.T) {
	c := &Controller{owners: wake.NewOwners(kind), placement: NewPlacement(), gate: gate.New(),
		memory: map[types.UID]memory{}}
	set := newSet()
	c.put(set)
	c.placement.Of(set)
	c.remember(set.UID, func(m *memory) { m.written = now })
	c.gate.Await(set.UID, "x", func() bool { return false })
	c.forget(set)
	if len(c.memory) > 0 || len(c.placement.Put(newNode("n1"))) > 0 || !c.gate.IsOpen(set.UID) ||
		len(c.owners.Selectors.Matching("default", map[string]string{"app": "agent"})) > 0 {
		t.Error("something of a DaemonSet that is gone is left")
	}
}
