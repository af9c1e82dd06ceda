package csivolume

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/events"
	"keelson.dev/kit/volumename"
	"keelson.dev/services/nodeagent/internal/csiplugin"
	"keelson.dev/services/nodeagent/internal/csiplugin/csifake"
	"keelson.dev/services/nodeagent/internal/podfiles"
	"keelson.dev/services/nodeagent/internal/volume/mountfake"
)

const (
	disk       = "disk.example.com"
	uniqueName = corev1.UniqueVolumeName("kubernetes.io/csi/disk.example.com^vol-1")
)

// rig is the volumes of a node with a driver that serves a real socket.
type rig struct {
	*Volumes
	t        *testing.T
	driver   *csifake.Driver
	registry *csiplugin.Registry
	mounter  *mountfake.Mounter
	root     podfiles.Root

	mu      sync.Mutex // guards the fields below
	node    *corev1.Node
	drivers map[string]*storagev1.CSIDriver
	attach  map[string]*storagev1.VolumeAttachment
	secrets map[string]*corev1.Secret
	now     time.Time
	boot    string
	// claim and pv are those of all volumes; broken fails the writes to the claim.
	claim  *corev1.PersistentVolumeClaim
	pv     *corev1.PersistentVolume
	broken error
	events []string
}

func newRig(t *testing.T) *rig {
	return newRigWith(t, csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME)
}

// newRigWith returns a rig whose driver has the capabilities.
func newRigWith(t *testing.T, can ...csi.NodeServiceCapability_RPC_Type) *rig {
	r := &rig{t: t, mounter: &mountfake.Mounter{}, root: podfiles.Root{Dir: t.TempDir(), LogDir: t.TempDir()},
		node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, drivers: map[string]*storagev1.CSIDriver{},
		attach: map[string]*storagev1.VolumeAttachment{}, secrets: map[string]*corev1.Secret{}, now: time.Unix(1000, 0)}
	r.driver = csifake.New(disk, t.TempDir(), r.mounter)
	r.driver.Can = can
	r.registry = csiplugin.New(csiplugin.Config{Root: r.root.Dir, Log: zap.NewNop(), CallTimeout: time.Second})
	r.restart()
	r.driver.Serve(t, filepath.Join(r.registry.Dir(), "disk.sock"))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.registry.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	r.eventually("the driver to register", func() bool { _, err := r.registry.Driver(disk); return err == nil })
	return r
}

// restart starts a new agent with what is on disk.
func (r *rig) restart() {
	r.Volumes = Open(Config{Files: r.root, Mounter: r.mounter, Objects: r, NodeName: "n", Log: zap.NewNop(),
		Events: r, Boot: r.boot, Changed: func() {}, Now: r.clock,
		Node: func() *corev1.Node { r.mu.Lock(); defer r.mu.Unlock(); return r.node.DeepCopy() },
		Driver: func(name string) (Driver, error) {
			driver, err := r.registry.Driver(name)
			if err != nil {
				return nil, err
			}
			return driver, nil
		}})
}

func (r *rig) clock() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now
}

// reap runs Run until condition holds and the agent has nothing left to do. A condition on what the driver has done
// holds before its answer is here: who stopped then would have the agent ask again.
func (r *rig) reap(what string, condition func() bool) {
	r.t.Helper()
	ctx, cancel := context.WithCancel(r.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.Run(ctx)
	}()
	r.eventually(what, func() bool { return condition() && len(r.tasks()) == 0 })
	cancel()
	<-done
}

func (r *rig) eventually(what string, condition func() bool) {
	r.t.Helper()
	for late := time.After(30 * time.Second); !condition(); {
		select {
		case <-time.After(5 * time.Millisecond):
		case <-late:
			r.t.Fatalf("waiting for %s", what)
		}
	}
}

func (r *rig) CSIDriver(_ context.Context, name string) (*storagev1.CSIDriver, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if found := r.drivers[name]; found != nil {
		return found, nil
	}
	return nil, apierrors.NewNotFound(storagev1.Resource("csidriver"), name)
}

func (r *rig) VolumeAttachment(_ context.Context, name string) (*storagev1.VolumeAttachment, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if found := r.attach[name]; found != nil {
		return found, nil
	}
	return nil, apierrors.NewNotFound(storagev1.Resource("volumeattachment"), name)
}

func (r *rig) DriverSecret(_ context.Context, ref corev1.SecretReference) (*corev1.Secret, error) {
	if found := r.secrets[ref.Namespace+"/"+ref.Name]; found != nil {
		return found, nil
	}
	return nil, apierrors.NewNotFound(corev1.Resource("secret"), ref.Name)
}

func (r *rig) Claim(ctx context.Context, namespace, name string) (*corev1.PersistentVolumeClaim, error) {
	return r.ClaimNow(ctx, namespace, name)
}

func (r *rig) PersistentVolume(ctx context.Context, _ types.UID, name string) (*corev1.PersistentVolume, error) {
	return r.VolumeNow(ctx, name)
}

func (r *rig) ClaimNow(_ context.Context, _, name string) (*corev1.PersistentVolumeClaim, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.claim == nil || r.claim.Name != name {
		return nil, apierrors.NewNotFound(corev1.Resource("persistentvolumeclaim"), name)
	}
	return r.claim.DeepCopy(), nil
}

func (r *rig) VolumeNow(_ context.Context, name string) (*corev1.PersistentVolume, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pv == nil || r.pv.Name != name {
		return nil, apierrors.NewNotFound(corev1.Resource("persistentvolume"), name)
	}
	return r.pv.DeepCopy(), nil
}

// PatchClaimStatus applies a merge patch of what nodes write, as the API does, if the version is that of the claim.
func (r *rig) PatchClaimStatus(_ context.Context, _, name string, patch []byte) (*corev1.PersistentVolumeClaim, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.broken != nil {
		return nil, r.broken
	}
	var asked struct {
		Metadata metav1.ObjectMeta
		Status   struct {
			Capacity                  corev1.ResourceList
			AllocatedResourceStatuses map[corev1.ResourceName]*corev1.ClaimResourceStatus
			Conditions                *[]corev1.PersistentVolumeClaimCondition
		}
	}
	if err := json.Unmarshal(patch, &asked); err != nil {
		return nil, err
	}
	if asked.Metadata.ResourceVersion != r.claim.ResourceVersion || asked.Metadata.UID != r.claim.UID {
		return nil, apierrors.NewConflict(corev1.Resource("persistentvolumeclaims"), name, errors.New("it has changed"))
	}
	next := r.claim.DeepCopy()
	next.ResourceVersion += "+"
	maps.Copy(next.Status.Capacity, asked.Status.Capacity)
	for key, state := range asked.Status.AllocatedResourceStatuses {
		delete(next.Status.AllocatedResourceStatuses, key)
		if state != nil {
			next.Status.AllocatedResourceStatuses = map[corev1.ResourceName]corev1.ClaimResourceStatus{key: *state}
		}
	}
	if asked.Status.Conditions != nil {
		next.Status.Conditions = *asked.Status.Conditions
	}
	r.claim = next
	return next.DeepCopy(), nil
}

func (r *rig) Record(pod *corev1.Pod, _ string, e events.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, pod.Name+" "+e.Reason)
}

func (r *rig) RecordClaim(claim *corev1.PersistentVolumeClaim, e events.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, claim.Name+" "+e.Reason)
}

// says changes the driver's object.
func (r *rig) says(change func(*storagev1.CSIDriverSpec)) {
	d := &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: disk}}
	change(&d.Spec)
	r.drivers[disk] = d
}

func unattached(s *storagev1.CSIDriverSpec) { s.AttachRequired = ptr.To(false) }

// attached makes the API list the volume as attached.
func (r *rig) attached() {
	r.mu.Lock()
	defer r.mu.Unlock()
	name := volumename.Attachment(disk, "vol-1", "n")
	r.attach[name] = &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: storagev1.VolumeAttachmentSpec{Attacher: disk, NodeName: "n",
			Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: ptr.To("pv-1")}},
		Status: storagev1.VolumeAttachmentStatus{Attached: true,
			AttachmentMetadata: map[string]string{"device": "sdx"}}}
	r.node.Status.VolumesAttached = []corev1.AttachedVolume{{Name: uniqueName}}
}

func pod(uid types.UID) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p-" + string(uid), UID: uid},
		Spec: corev1.PodSpec{ServiceAccountName: "robot"}}
}

// source returns the volume vol-1 for a Pod.
func source(uid types.UID) Source {
	return Source{Pod: pod(uid), Name: "pv-1", Driver: disk, Handle: "vol-1",
		Attributes:  map[string]string{"size": "big"},
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}}
}

func (r *rig) setUp(s Source) string {
	r.t.Helper()
	path, err := r.SetUp(r.t.Context(), s)
	if err != nil {
		r.t.Fatal(err)
	}
	return path
}

func (r *rig) tearDown(s Source) {
	r.t.Helper()
	if err := r.TearDown(r.t.Context(), s.Pod.UID, s.Name); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) wantCalls(want ...string) {
	r.t.Helper()
	if got := r.driver.Calls(); !slices.Equal(got, want) {
		r.t.Errorf("the driver was called %v, want %v", got, want)
	}
}

// wantNothingLeft checks that nothing is left on disk or mounted.
func (r *rig) wantNothingLeft() {
	r.t.Helper()
	if mounts := r.mounter.Mounts(); len(mounts) != 0 {
		r.t.Errorf("mounts are left: %v", mounts)
	}
	if names := r.InUse(); len(names) != 0 {
		r.t.Errorf("volumes are in use: %v", names)
	}
	err := filepath.WalkDir(r.root.Dir, func(path string, entry os.DirEntry, err error) error {
		if err == nil && (strings.Contains(path, "vol_data") || strings.Contains(path, "csi-unpublish/") ||
			strings.Contains(path, "volumeDevices/publish/") ||
			entry.Name() == disk || strings.HasSuffix(path, "/mount")) {
			r.t.Errorf("%s is left", path)
		}
		return err
	})
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		r.t.Error(err)
	}
}
