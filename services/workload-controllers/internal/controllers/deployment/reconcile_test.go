package deployment

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"keelson.dev/kit/events/eventstest"
	"keelson.dev/kit/failpoint"
	"keelson.dev/services/workload-controllers/internal/gate"
	"keelson.dev/services/workload-controllers/internal/ownerindex"
	"keelson.dev/services/workload-controllers/internal/podset"
	"keelson.dev/services/workload-controllers/internal/wake"
	"keelson.dev/services/workload-controllers/internal/write"
)

// bench is a Controller over an API in memory and a cache that catches up when it is told to.
type bench struct {
	t           *testing.T
	api         client.WithWatch
	deployments toolscache.Indexer
	sets        toolscache.Indexer
	events      eventstest.Recorded
	controller  *Controller
}

func newBench(t *testing.T, funcs interceptor.Funcs, objects ...client.Object) *bench {
	b := &bench{
		t: t, deployments: toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, toolscache.Indexers{}),
		sets: toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, toolscache.Indexers{}),
	}
	b.api = fake.NewClientBuilder().WithObjects(objects...).WithStatusSubresource(&appsv1.Deployment{},
		&appsv1.ReplicaSet{}).WithInterceptorFuncs(funcs).Build()
	index, err := ownerindex.Of[*appsv1.ReplicaSet](b.sets)
	if err != nil {
		t.Fatal(err)
	}
	pending := gate.New()
	b.controller = &Controller{
		client: b.api, live: b.api, sets: index, pods: podset.NewIndex(),
		deployments: &write.Writer{Client: b.api, Kind: "deployment", Gate: pending, Store: b.deployments},
		replicaSets: &write.Writer{Client: b.api, Kind: "replicaset", Gate: pending, Store: b.sets},
		gate:        pending, recorder: &b.events, log: zap.NewNop(), now: func() time.Time { return now },
	}
	b.catchUp()
	return b
}

// catchUp makes the cache show what the API has.
func (b *bench) catchUp() {
	b.t.Helper()
	deployments, sets := &appsv1.DeploymentList{}, &appsv1.ReplicaSetList{}
	if err := errors.Join(b.api.List(b.t.Context(), deployments), b.api.List(b.t.Context(), sets)); err != nil {
		b.t.Fatal(err)
	}
	var d, s []any
	for i := range deployments.Items {
		d = append(d, &deployments.Items[i])
	}
	for i := range sets.Items {
		s = append(s, &sets.Items[i])
	}
	if err := errors.Join(b.deployments.Replace(d, "1000000"), b.sets.Replace(s, "1000000")); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) reconcile() (reconcile.Result, error) {
	return b.controller.steps().Reconcile(b.t.Context(), wake.Request("default", "web"))
}

func (b *bench) deployment() *appsv1.Deployment {
	b.t.Helper()
	d := &appsv1.Deployment{}
	if err := b.api.Get(b.t.Context(), client.ObjectKey{Namespace: "default", Name: "web"}, d); err != nil {
		b.t.Fatal(err)
	}
	return d
}

func (b *bench) replicaSets() []appsv1.ReplicaSet {
	b.t.Helper()
	sets := &appsv1.ReplicaSetList{}
	if err := b.api.List(b.t.Context(), sets); err != nil {
		b.t.Fatal(err)
	}
	return sets.Items
}

// DEP-021, DEP-055, DEP-082: the first pass creates, reports and numbers; the next ones find nothing to do.
func TestFirstPass(t *testing.T) {
	b := newBench(t, interceptor.Funcs{}, newDeployment(3))
	if _, err := b.reconcile(); err != nil {
		t.Fatal(err)
	}
	sets := b.replicaSets()
	if len(sets) != 1 || *sets[0].Spec.Replicas != 3 {
		t.Fatalf("ReplicaSets %+v", sets)
	}
	if want := "Normal ScalingReplicaSet Scaled up replica set " + sets[0].Name +
		" from 0 to 3"; !slices.Equal(b.events, eventstest.Recorded{want}) {
		t.Errorf("events %q, want %q", b.events, want)
	}
	d := b.deployment()
	if d.Annotations["deployment.kubernetes.io/revision"] != "1" || progressOf(d.Status).Reason != reasonCreated {
		t.Errorf("annotations %v, status %+v", d.Annotations, d.Status)
	}
	b.catchUp()
	if _, err := b.reconcile(); err != nil || len(b.events) != 1 || len(b.replicaSets()) != 1 {
		t.Errorf("second pass: %v, events %q", err, b.events)
	}
}

// The cache that the pass after a write reads must show the write.
func TestOwnWritesAreAwaited(t *testing.T) {
	b := newBench(t, interceptor.Funcs{}, newDeployment(3))
	if _, err := b.reconcile(); err != nil {
		t.Fatal(err)
	}
	result, err := b.reconcile() // the cache still shows no ReplicaSet
	if err != nil || result.RequeueAfter != time.Second || len(b.replicaSets()) != 1 {
		t.Errorf("result %+v, %v, with %d ReplicaSets", result, err, len(b.replicaSets()))
	}
}

// DEP-028: a name that another object has is a collision; the next pass takes another name.
func TestCollision(t *testing.T) {
	d := newDeployment(3)
	squatter := Decide(Input{Now: now, Deployment: d}).Create.ReplicaSet.DeepCopy()
	squatter.OwnerReferences, squatter.Labels = nil, map[string]string{"app": "other"}
	squatter.Spec.Template.Spec.Containers[0].Image = "other"
	b := newBench(t, interceptor.Funcs{}, d, squatter)
	for range 2 {
		if _, err := b.reconcile(); err != nil {
			t.Fatal(err)
		}
		b.catchUp()
	}
	if count := b.deployment().Status.CollisionCount; count == nil || *count != 1 {
		t.Errorf("collisions %v, want 1", count)
	}
	if sets := b.replicaSets(); len(sets) != 2 {
		t.Errorf("%d ReplicaSets, want the squatter and one more", len(sets))
	}
}

// An own ReplicaSet that the cache does not show is no collision.
func TestNameTakenByItself(t *testing.T) {
	d := newDeployment(3)
	own := Decide(Input{Now: now, Deployment: d}).Create.ReplicaSet.DeepCopy()
	own.UID = "own"
	b := newBench(t, interceptor.Funcs{}, d, own)
	if err := b.sets.Replace(nil, "1"); err != nil {
		t.Fatal(err)
	}
	result, err := b.reconcile()
	if err != nil || result.RequeueAfter != time.Second || b.deployment().Status.CollisionCount != nil ||
		len(b.events) != 0 {
		t.Errorf("result %+v, %v, status %+v, events %q", result, err, b.deployment().Status, b.events)
	}
}

// DEP-130: what keeps the ReplicaSet from being created is told in the condition and in an event, and tried again.
// DEP-126: the new generation has not been acted on, and the counters are those of the old one.
func TestCreateIsRefused(t *testing.T) {
	before := appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 3, UpdatedReplicas: 3, ReadyReplicas: 3,
		AvailableReplicas: 3}
	refused := apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "replicasets"}, "web",
		errors.New("exceeded quota"))
	b := newBench(t, interceptor.Funcs{Create: func(context.Context, client.WithWatch, client.Object,
		...client.CreateOption) error {
		return refused
	}}, newDeployment(3, withStatus(before)))
	if _, err := b.reconcile(); !apierrors.IsForbidden(err) {
		t.Errorf("error %v", err)
	}
	if got := progressOf(b.deployment().Status); got.Reason != reasonCreateError || got.Status != "False" ||
		!strings.Contains(got.Message, "exceeded quota") {
		t.Errorf("condition %+v", got)
	}
	after := b.deployment().Status
	if after.Conditions = nil; !reflect.DeepEqual(after, before) {
		t.Errorf("status %+v, want %+v", after, before)
	}
	if len(b.events) != 1 || !strings.HasPrefix(b.events[0],
		"Warning ReplicaSetCreateError Failed to create new replica set") {
		t.Errorf("events %q", b.events)
	}
}

// Someone else's newer object ends the pass without being an error, and without any effect after it.
func TestConflict(t *testing.T) {
	d := newDeployment(5, atRevision(2))
	set := newSet(d, 2, 3, 3, sizedFor(3, 4))
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "replicasets"}, set.Name, errors.New("newer"))
	b := newBench(t, interceptor.Funcs{Update: func(context.Context, client.WithWatch, client.Object,
		...client.UpdateOption) error {
		return conflict
	}}, d, set)
	result, err := b.reconcile()
	if err != nil || result.RequeueAfter != time.Second || len(b.events) != 0 ||
		b.deployment().Status.ObservedGeneration != 0 {
		t.Errorf("result %+v, %v, events %q, status %+v", result, err, b.events, b.deployment().Status)
	}
}

// A pass that dies at any write is made up for by the passes after it: one ReplicaSet, one event of it at most, and
// the start of the rollout is reported.
func TestPassesThatFailAreMadeUpFor(t *testing.T) {
	for _, place := range []string{"replicaset.create", "deployment.status", "deployment.patch"} {
		for _, when := range []string{"before", "after"} {
			t.Run(place+" "+when, func(t *testing.T) {
				name := "workload-controllers/" + place + "." + when
				if err := failpoint.Arm(name, "1*error(test)"); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { failpoint.Disarm(name) })
				b := newBench(t, interceptor.Funcs{}, newDeployment(3))
				if _, err := b.reconcile(); !errors.Is(err, failpoint.ErrInjected) {
					t.Fatalf("error %v", err)
				}
				for range 3 {
					b.catchUp()
					if _, err := b.reconcile(); err != nil {
						t.Fatal(err)
					}
				}
				d := b.deployment()
				reason := progressOf(d.Status).Reason
				if len(b.replicaSets()) != 1 || d.Annotations["deployment.kubernetes.io/revision"] != "1" ||
					(reason != reasonCreated && reason != reasonFound) {
					t.Errorf("%d ReplicaSets, annotations %v, reason %s", len(b.replicaSets()), d.Annotations, reason)
				}
			})
		}
	}
}

// DEP-032: an orphan is adopted only after the Deployment has been seen alive, and then is the current ReplicaSet.
func TestAdoption(t *testing.T) {
	d := newDeployment(3)
	orphan := newSet(d, 2, 3, 3, func(set *appsv1.ReplicaSet) { set.OwnerReferences = nil })
	b := newBench(t, interceptor.Funcs{}, d, orphan)
	for range 3 {
		if _, err := b.reconcile(); err != nil {
			t.Fatal(err)
		}
		b.catchUp()
	}
	sets := b.replicaSets()
	if len(sets) != 1 || len(sets[0].OwnerReferences) != 1 || sets[0].OwnerReferences[0].UID != d.UID ||
		len(b.events) != 0 {
		t.Errorf("ReplicaSets %+v, events %q", sets, b.events)
	}
	gone := newBench(t, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey,
		object client.Object, opts ...client.GetOption) error {
		if _, ok := object.(*appsv1.Deployment); !ok {
			return apierrors.NewNotFound(schema.GroupResource{Resource: "deployments"}, key.Name)
		}
		return c.Get(ctx, key, object, opts...)
	}}, newDeployment(3), orphan)
	if _, err := gone.reconcile(); !apierrors.IsNotFound(err) || len(gone.replicaSets()[0].OwnerReferences) != 0 {
		t.Errorf("of a Deployment that is gone: %v, owners %v", err, gone.replicaSets()[0].OwnerReferences)
	}
}
