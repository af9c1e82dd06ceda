package write

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"keelson.dev/kit/controller"
	"keelson.dev/services/workload-controllers/internal/gate"
	"keelson.dev/services/workload-controllers/internal/leanclient"
)

// Own is what one controller writes with.
type Own struct {
	// Client has the controller's name as its field owner.
	Client client.Client
	// Gate is the one of all its Writers.
	Gate *gate.Gate

	setup *controller.Setup
}

// By returns what the controller that is being set up writes with.
func By(s *controller.Setup) *Own {
	return &Own{Client: client.WithFieldOwner(s.Client, s.Name), Gate: gate.New(), setup: s}
}

// LeanBy is By for a controller that often writes statuses, which cost it little, and the client for its Pods.
func LeanBy(s *controller.Setup) (*Own, *leanclient.Client) {
	own := By(s)
	lean, err := leanclient.New(s.Config)
	s.Check(err)
	own.Client = lean.WithStatuses(own.Client, s.Name)
	return own, lean
}

// Gated returns the Writer of a kind of which the cache shows what was written.
func (o *Own) Gated(kind string, object client.Object) *Writer {
	return &Writer{Client: o.Client, Kind: kind, Gate: o.Gate, Store: o.setup.Store(object)}
}

// Ungated returns the Writer of a kind whose writes may be repeated.
func (o *Own) Ungated(kind string) *Writer { return &Writer{Client: o.Client, Kind: kind} }
