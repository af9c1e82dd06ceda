package processes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// tidyTime is how long a test's objects may take to be gone once it has ended.
const tidyTime = 2 * time.Minute

// lent are the meshes that this process lends to tests in turn, by their number of nodes.
var lent = struct {
	sync.Mutex
	of map[int]*lending
}{of: map[int]*lending{}}

// lending is a mesh that is lent, one test at a time.
type lending struct {
	mesh *Mesh
	// usual are the objects of a mesh that no test uses.
	usual []string
}

// Shared lends a mesh of so many nodes that other tests of this process have used before. The test gives it back as it
// was: with the same nodes, and no object more or less. What it has killed or restarted with other arguments is as keel
// starts it again. A mesh that a test leaves otherwise, or on which one fails, is ended, so that the next has a new
// one. EndShared ends the others.
func Shared(t testing.TB, nodes int) *Mesh {
	t.Helper()
	l := borrow(t, nodes)
	m := l.mesh
	t.Cleanup(func() {
		if err := m.tidy(l.usual); err != nil {
			t.Errorf("the mesh is not given back as it was: %v", err)
		}
		if t.Failed() {
			m.showLogs(t)
			if err := m.down(); err != nil {
				t.Error(err)
			}
			return
		}
		lent.Lock()
		defer lent.Unlock()
		lent.of[nodes] = l
	})
	return m
}

// borrow takes the mesh that no test uses, or brings one up.
func borrow(t testing.TB, nodes int) *lending {
	t.Helper()
	lent.Lock()
	l := lent.of[nodes]
	delete(lent.of, nodes)
	lent.Unlock()
	if l != nil {
		return l
	}
	l = &lending{mesh: newMesh(t, nodes)}
	err := l.mesh.begin()
	if err == nil {
		l.usual, err = l.mesh.settled()
	}
	if err != nil {
		t.Fatal(errors.Join(err, l.mesh.down()))
	}
	return l
}

// EndShared ends the meshes that are lent to no test.
func EndShared() error {
	lent.Lock()
	defer lent.Unlock()
	var failed error
	for _, l := range lent.of {
		failed = errors.Join(failed, l.mesh.down())
	}
	clear(lent.of)
	return failed
}

// tidy has keel start again what a test has ended or replaced, and waits until the objects are the usual ones.
func (m *Mesh) tidy(usual []string) error {
	clear(m.restarted)
	if err := m.start(); err != nil {
		return err
	}
	var surplus, missing []string
	err := wait.PollUntilContextTimeout(context.Background(), 100*time.Millisecond, tidyTime, true,
		func(ctx context.Context) (bool, error) {
			now, err := m.objects(ctx)
			if err != nil {
				return false, err
			}
			surplus, missing = without(now, usual), without(usual, now)
			return len(surplus)+len(missing) == 0, nil
		})
	if err != nil {
		return fmt.Errorf("%w: too many are %v, and missing are %v", err, surplus, missing)
	}
	return nil
}

func without(all, some []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(name string) bool { return slices.Contains(some, name) })
}

// settled are the objects once nothing has come for a while: daemons make theirs soon after they lead.
func (m *Mesh) settled() ([]string, error) {
	const rest = 5 // looks
	var before []string
	same := 0
	err := wait.PollUntilContextTimeout(context.Background(), 200*time.Millisecond, tidyTime, true,
		func(ctx context.Context) (bool, error) {
			now, err := m.objects(ctx)
			if err != nil {
				return false, err
			}
			if same++; !slices.Equal(now, before) {
				same = 0
			}
			before = now
			return same == rest, nil
		})
	return before, err
}

// passing are kinds whose objects come and go by themselves.
var passing = []schema.GroupResource{{Resource: "events"}, {Group: "events.k8s.io", Resource: "events"},
	{Group: "coordination.k8s.io", Resource: "leases"}}

// objects names all objects of the mesh, in order.
func (m *Mesh) objects(ctx context.Context) ([]string, error) {
	quiet := rest.CopyConfig(m.admin)
	quiet.WarningHandler = rest.NoWarnings{} // of kinds that are deprecated
	kinds, err := discovery.NewDiscoveryClientForConfig(quiet)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	client, err := metadata.NewForConfig(quiet)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	groups, err := kinds.ServerPreferredResources()
	if err != nil {
		return nil, fmt.Errorf("asking for the kinds: %w", err)
	}
	var names []string
	for _, group := range groups {
		version, err := schema.ParseGroupVersion(group.GroupVersion)
		if err != nil {
			return nil, fmt.Errorf("reading a group: %w", err)
		}
		for _, kind := range group.APIResources {
			resource := version.WithResource(kind.Name)
			if !slices.Contains(kind.Verbs, "list") || !slices.Contains(kind.Verbs, "delete") ||
				slices.Contains(passing, resource.GroupResource()) {
				continue
			}
			list, err := client.Resource(resource).List(ctx, metav1.ListOptions{})
			if err != nil {
				return nil, fmt.Errorf("listing %s: %w", kind.Name, err)
			}
			for _, o := range list.Items {
				names = append(names, strings.TrimSpace(fmt.Sprintf("%s %s %s", kind.Name, o.Namespace, o.Name)))
			}
		}
	}
	slices.Sort(names)
	return names, nil
}
