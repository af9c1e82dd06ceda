package csivolume

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/kit/events"
	"keelson.dev/kit/wakeup"
	"keelson.dev/services/nodeagent/internal/csiplugin"
	"keelson.dev/services/nodeagent/internal/podfiles"
)

// Driver makes the calls to a driver, each with a time limit. They may be repeated.
type Driver interface {
	Can() csiplugin.Capabilities
	Stage(ctx context.Context, request *csi.NodeStageVolumeRequest) error
	Publish(ctx context.Context, request *csi.NodePublishVolumeRequest) error
	Unpublish(ctx context.Context, handle, target string) error
	Unstage(ctx context.Context, handle, staging string) error
	Expand(ctx context.Context, request *csi.NodeExpandVolumeRequest) error
}

// Objects reads what volumes of drivers need from the API. An object that does not exist is a not-found error.
type Objects interface {
	CSIDriver(ctx context.Context, name string) (*storagev1.CSIDriver, error)
	VolumeAttachment(ctx context.Context, name string) (*storagev1.VolumeAttachment, error)
	DriverSecret(ctx context.Context, ref corev1.SecretReference) (*corev1.Secret, error)
	// Claim and PersistentVolume return what is known of objects that the Pods of the node use; ClaimNow and VolumeNow
	// read them.
	Claim(ctx context.Context, namespace, name string) (*corev1.PersistentVolumeClaim, error)
	PersistentVolume(ctx context.Context, pod types.UID, name string) (*corev1.PersistentVolume, error)
	ClaimNow(ctx context.Context, namespace, name string) (*corev1.PersistentVolumeClaim, error)
	VolumeNow(ctx context.Context, name string) (*corev1.PersistentVolume, error)
	// PatchClaimStatus applies a merge patch to the status of a claim.
	PatchClaimStatus(ctx context.Context, namespace, name string, patch []byte) (*corev1.PersistentVolumeClaim, error)
}

// Recorder records events about Pods and their claims.
type Recorder interface {
	Record(pod *corev1.Pod, fieldPath string, e events.Event)
	RecordClaim(claim *corev1.PersistentVolumeClaim, e events.Event)
}

// Mounter is the part of volume.Mounter that this package needs.
type Mounter interface {
	IsMount(target string) (bool, error)
	IsDevice(target string) (bool, error)
	Unmount(target string) error
	Under(dir string) ([]string, error)
}

// Config is what Volumes need.
type Config struct {
	Files   podfiles.Root
	Mounter Mounter
	// Driver returns a driver that is registered on this node.
	Driver  func(name string) (Driver, error)
	Objects Objects
	// Node returns the Node in a version at least as new as the one of the last call of Reported.
	Node func() *corev1.Node
	// Changed is called after the volumes in use have changed. It must not block.
	Changed  func()
	NodeName string
	// Boot identifies the boot of the machine.
	Boot   string
	Events Recorder
	Log    *zap.Logger
	// Now is the clock; time.Now by default.
	Now func() time.Time
}

// Volumes are the volumes of drivers on one node. Calls for different Pods may run concurrently; those for one Pod
// must not.
type Volumes struct {
	Config
	*store
	locks  locks
	bell   bell
	wishes wishes
	// due wakes Run.
	due wakeup.Signal
}

// Open loads what is on disk. Damaged records are logged and left to the Pods that use them.
func Open(config Config) *Volumes {
	if config.Now == nil {
		config.Now = time.Now
	}
	v := &Volumes{Config: config, bell: newBell(), due: wakeup.New()}
	records, err := openStore(paths{config.Files}, config.Changed)
	if err != nil {
		config.Log.Error("some records of CSI volumes cannot be used", zap.Error(err))
	}
	v.store = records
	return v
}

// InUse returns the attached volumes that are in use on this node: Node.status.volumesInUse. While it is uncertain
// what a Pod uses, no volume that was in use is dropped.
func (v *Volumes) InUse() []corev1.UniqueVolumeName {
	names := v.inUse()
	if v.uncertain() {
		names = append(names, v.Node().Status.VolumesInUse...)
		slices.Sort(names)
		names = slices.Compact(names)
	}
	return names
}

// Reported takes in which volumes the Node in the API lists as in use.
func (v *Volumes) Reported(names []corev1.UniqueVolumeName) {
	v.report(names)
	v.Look()
}

// Look wakes everything that waits: a driver has registered, or the Node has changed.
func (v *Volumes) Look() {
	v.bell.ring()
	v.lookForDue()
}

func (v *Volumes) lookForDue() {
	v.due.Send()
}

// bell wakes all waiters.
type bell struct {
	mu   *sync.Mutex // guards next
	next *chan struct{}
}

func newBell() bell {
	next := make(chan struct{})
	return bell{&sync.Mutex{}, &next}
}

// heard returns a channel that is closed when the bell next rings.
func (b bell) heard() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return *b.next
}

func (b bell) ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	close(*b.next)
	*b.next = make(chan struct{})
}

// locks allow one user of a volume at a time.
type locks struct {
	mu   sync.Mutex // guards held
	held map[volumeID]chan struct{}
}

// lock waits for its turn, unless ctx ends before.
func (l *locks) lock(ctx context.Context, id volumeID) (unlock func(), err error) {
	for {
		l.mu.Lock()
		busy := l.held[id]
		if busy == nil {
			if l.held == nil {
				l.held = map[volumeID]chan struct{}{}
			}
			mine := make(chan struct{})
			l.held[id] = mine
			l.mu.Unlock()
			return func() {
				l.mu.Lock()
				defer l.mu.Unlock()
				delete(l.held, id)
				close(mine)
			}, nil
		}
		l.mu.Unlock()
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
