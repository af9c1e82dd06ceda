package events

import (
	"fmt"
	"hash/maphash"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
)

const (
	// writers is how many Events a process writes at once: one at a time would hold a daemon back that reports each
	// Pod.
	writers = 8
	// remembered is how many Events all writers together know again, to count them up: client-go's number for one
	// writer.
	remembered = 4096
)

// Pool writes the Events of a process's recorders in the background, those about one object in order. Losing one is no
// error: Events are hints, never state.
type Pool struct {
	writers [writers]record.EventBroadcaster
}

// NewPool starts the writers. Stop them at the end.
func NewPool(config *rest.Config) (*Pool, error) {
	client, err := typedcorev1.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("building the events client: %w", err)
	}
	p := &Pool{}
	for i := range p.writers {
		p.writers[i] = record.NewBroadcaster(
			record.WithCorrelatorOptions(record.CorrelatorOptions{LRUCacheSize: remembered / writers}))
		p.writers[i].StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.Events("")})
	}
	return p, nil
}

// Recorder returns a recorder whose Events name component as their source, and host if the component runs per node. The
// scheme must know the objects that are recorded.
func (p *Pool) Recorder(scheme *runtime.Scheme, component, host string) *Recorder {
	r := &Recorder{}
	for i := range p.writers {
		r.writers[i] = p.writers[i].NewRecorder(scheme, corev1.EventSource{Component: component, Host: host})
	}
	return r
}

// Stop drops what has not been written yet.
func (p *Pool) Stop() {
	for i := range p.writers {
		p.writers[i].Shutdown()
	}
}

// Recorder writes Events in the name of one source.
type Recorder struct {
	writers [writers]record.EventRecorder
}

// Record writes the Event about the object; a *corev1.ObjectReference will do. It never waits: what a full queue cannot
// take is dropped.
func (r *Recorder) Record(object runtime.Object, e Event) {
	r.writers[writerOf(uidOf(object))].Event(object, e.Type, e.Reason, e.Message)
}

var seed = maphash.MakeSeed()

// writerOf gives all Events about an object to one writer, which keeps their order and counts repeated ones up.
func writerOf(uid types.UID) uint64 {
	return maphash.String(seed, string(uid)) % writers
}

func uidOf(object runtime.Object) types.UID {
	if reference, ok := object.(*corev1.ObjectReference); ok {
		return reference.UID
	}
	accessor, err := meta.Accessor(object)
	if err != nil {
		return ""
	}
	return accessor.GetUID()
}
