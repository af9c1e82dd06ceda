package controllerrevision

import (
	"errors"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"keelson.dev/kit/pass"
	"keelson.dev/services/workload-controllers/internal/gate"
	"keelson.dev/services/workload-controllers/internal/write"
)

// bench is a Writer over an API in memory, whose cache shows nothing.
type bench struct {
	*Writer
	t      *testing.T
	server client.WithWatch
}

func newBench(t *testing.T, there ...client.Object) *bench {
	set := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "agent", UID: agent.UID}}
	server := fake.NewClientBuilder().WithObjects(append(there, set)...).Build()
	store := toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, toolscache.Indexers{})
	return &bench{t: t, server: server, Writer: &Writer{Live: server,
		Write: &write.Writer{Client: server, Kind: "controllerrevision", Gate: gate.New(), Store: store}}}
}

func (b *bench) revisions() []appsv1.ControllerRevision {
	b.t.Helper()
	var list appsv1.ControllerRevisionList
	if err := b.server.List(b.t.Context(), &list); err != nil {
		b.t.Fatal(err)
	}
	return list.Items
}

// apply decides and applies over what the server has.
func (b *bench) apply(image string) error {
	b.t.Helper()
	in := In{Owner: agent, Template: template(image)}
	for _, r := range b.revisions() {
		in.Revisions = append(in.Revisions, &r)
	}
	return b.Apply(b.t.Context(), in, Decide(in))
}

func TestAHistoryIsWritten(t *testing.T) {
	b := newBench(t)
	for _, image := range []string{"agent:1", "agent:2", "agent:1", "agent:1"} {
		if err := b.apply(image); err != nil {
			t.Fatal(err)
		}
	}
	var got []int64
	for _, r := range b.revisions() {
		got = append(got, r.Revision)
	}
	if slices.Sort(got); !slices.Equal(got, []int64{2, 3}) {
		t.Errorf("revisions %v, want 2 and, of the template that came back, 3", got)
	}
	if b.Write.Gate.IsOpen(agent.UID) {
		t.Error("the next pass does not wait for what was written")
	}
	all := b.revisions()
	if err := b.Delete(t.Context(), agent.UID, []*appsv1.ControllerRevision{&all[0]}); err != nil {
		t.Fatal(err)
	}
	if left := b.revisions(); len(left) != 1 || left[0].Name != all[1].Name {
		t.Errorf("%d are left", len(left))
	}
}

// SET-155
func TestOrphansAreAdopted(t *testing.T) {
	left := revisionOf("agent:1", 3)
	left.OwnerReferences = nil
	b := newBench(t, left)
	if err := b.apply("agent:2"); err != nil {
		t.Fatal(err)
	}
	if all := b.revisions(); len(all) != 1 || !metav1.IsControlledBy(&all[0], &metav1.ObjectMeta{UID: agent.UID}) {
		t.Errorf("revisions %+v", all)
	}
}

// A name that is taken is the owner's own, made before, or else a collision.
func TestATakenName(t *testing.T) {
	plan := Decide(In{Owner: agent, Template: template("agent:1")})
	for name, c := range map[string]struct {
		change func(*appsv1.ControllerRevision)
		want   error
	}{
		"the same": {func(*appsv1.ControllerRevision) {}, pass.ErrStale},
		"of another template": {func(r *appsv1.ControllerRevision) { r.Data = revisionOf("agent:2", 1).Data },
			ErrCollision},
		"of another owner": {func(r *appsv1.ControllerRevision) { r.OwnerReferences[0].UID = "other" },
			ErrCollision},
		"that nobody has owned": {func(r *appsv1.ControllerRevision) { r.OwnerReferences = nil }, ErrCollision},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, revisionOf("agent:1", 1, c.change))
			if err := b.Apply(t.Context(), In{Owner: agent}, plan); !errors.Is(err, c.want) {
				t.Errorf("error %v, want %v", err, c.want)
			}
			if got := b.Write.Gate.IsOpen(agent.UID); got != errors.Is(c.want, ErrCollision) {
				t.Errorf("the gate is open: %t", got)
			}
		})
	}
}
