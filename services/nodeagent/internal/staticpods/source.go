// Package staticpods runs the Pods of a folder of manifests (--pod-manifest-path), with or without an API: it passes
// them to the workers, as podsource does with the API's Pods, and shows each one in the API by a mirror Pod.
//
// The decisions from files and running Pods are in decide*.go. A static Pod is defined by its file: its UID is computed
// from the content. A changed file ends one Pod and starts another, when nothing of the first is left. The API decides
// nothing: a deleted mirror is created again, and an edited one changes nothing here.
package staticpods

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/events"
	"keelson.dev/kit/seconds"
	"keelson.dev/kit/wakeup"
)

// Statuses writes the statuses of mirrors, which are ordinary Pods of the API.
type Statuses interface {
	Publish(pod *corev1.Pod, status corev1.PodStatus, brief bool)
	Delete(ctx context.Context, pod *corev1.Pod) error
	Forget(uid types.UID)
}

// Config is what a Source needs.
type Config struct {
	Log *zap.Logger
	// Path is the folder of manifests, or one manifest; empty for none.
	Path string
	// NodeName is the node's name, Records the directory of the records for a later agent.
	NodeName, Records string
	// Set passes a version of a Pod to its worker, Remove notes that the source has taken in the worker's end. known
	// means that the node has run the Pod before.
	Set    func(pod *corev1.Pod, known bool)
	Remove func(uid types.UID)
	// Known reports whether the runtime had something of a Pod when the agent started.
	Known func(types.UID) bool
	// MakeRoom reports whether a Pod can be admitted now; if not, it is called again soon.
	MakeRoom func(pod *corev1.Pod) bool
	Client   typedcorev1.PodsGetter
	Statuses Statuses
	// Owner returns the UID of the Node; empty before it is registered.
	Owner func() types.UID
	// Record writes an Event about the Node.
	Record func(events.Event)
}

// reasonManifest is the reason of Events about manifests, reasonMirror of those about mirrors.
const (
	reasonManifest = "InvalidManifest"
	reasonMirror   = "FailedMirrorPod"
)

// Source runs the static Pods of a node.
type Source struct {
	Config
	records records
	// kick makes Run read the files; scanned is closed after the first time.
	kick    wakeup.Signal
	scanned chan struct{}
	// queue holds the names whose mirrors are to be compared.
	queue workqueue.TypedRateLimitingInterface[types.NamespacedName]
	// said is the last reported problem of each file; only Run uses it.
	said map[string]string
	// owned holds the UIDs of the static Pods. It needs no lock of ours: workers read it while they hold one that Set
	// needs.
	owned sync.Map

	mu sync.Mutex // guards all fields below; held during calls of Set, so that versions arrive in order
	// instances are the static Pods on the node, mirrors the API's mirrors on this node.
	instances map[types.UID]*instance
	// ended holds Pods that the runtime had when the agent started, and no longer has.
	ended   map[types.UID]bool
	mirrors map[types.NamespacedName]*corev1.Pod
}

type instance struct {
	Instance
	startedAt metav1.Time
	// unsaved means that the current record could not be written.
	unsaved bool
}

// New returns a Source that does nothing yet.
func New(config Config) *Source {
	return &Source{
		Config: config, records: records(config.Records), kick: wakeup.New(), scanned: make(chan struct{}),
		queue:     newQueue(),
		instances: map[types.UID]*instance{}, ended: map[types.UID]bool{},
		mirrors: map[types.NamespacedName]*corev1.Pod{},
		said:    map[string]string{},
	}
}

// Run follows the files until ctx ends. After that the Pods run on.
func (s *Source) Run(ctx context.Context) {
	var parts sync.WaitGroup
	defer parts.Wait()
	s.restore()
	s.look()
	close(s.scanned)
	var again <-chan time.Time
	if s.Path != "" {
		parts.Go(func() { watch(ctx, s.Path, s.Log, s.wake) })
		tick := time.NewTicker(rescan)
		defer tick.Stop()
		again = tick.C
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-again:
		case <-s.kick:
		}
		s.look()
	}
}

// Synced waits until the workers know the Pods of all files; false if ctx ends before.
func (s *Source) Synced(ctx context.Context) bool {
	select {
	case <-s.scanned:
		return true
	case <-ctx.Done():
		return false
	}
}

// wake makes Run read the files.
func (s *Source) wake() {
	s.kick.Send()
}

// restore takes up the Pods of an earlier agent.
func (s *Source) restore() {
	all, err := s.records.load()
	if err != nil {
		s.Log.Warn("some records of static Pods are not used", zap.Error(err))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range all {
		i := &instance{Instance: Instance{File: r.File, Pod: r.Pod, Stopping: r.Pod.DeletionTimestamp != nil},
			startedAt: r.StartedAt}
		known := s.Known(r.Pod.UID)
		if known {
			i.Pod.Status.StartTime = &r.StartedAt
		}
		s.addLocked(i, known)
	}
}

// look compares the files with the running Pods, and acts on the differences.
func (s *Source) look() {
	files, err := []File(nil), error(nil)
	if s.Path != "" {
		files, err = readFolder(s.Path)
	}
	if err != nil { // unknown files end nothing
		s.report([]Problem{{Message: oneLine(err.Error())}})
		return
	}
	s.mu.Lock()
	running := make([]Instance, 0, len(s.instances))
	for _, uid := range slices.Sorted(maps.Keys(s.instances)) {
		running = append(running, s.instances[uid].Instance)
	}
	plan := decide(files, running, s.NodeName)
	for uid, file := range plan.From {
		s.instances[uid].File, s.instances[uid].unsaved = file, true
	}
	for _, uid := range plan.Stop {
		s.stopLocked(s.instances[uid])
	}
	waits := false
	for _, next := range plan.Start {
		waits = !s.startLocked(next) || waits
	}
	for _, i := range s.instances {
		if i.unsaved {
			s.saveLocked(i)
		}
	}
	s.mu.Unlock()
	s.report(plan.Problems)
	if waits {
		time.AfterFunc(time.Second, s.wake)
	}
}

// startLocked starts a Pod; false if it waits for room.
func (s *Source) startLocked(next Instance) bool {
	known := s.Known(next.Pod.UID) && !s.ended[next.Pod.UID]
	if !known && !s.MakeRoom(next.Pod) {
		return false
	}
	i := &instance{Instance: next, startedAt: metav1.NewTime(time.Now().Truncate(time.Second))}
	s.Log.Info("starting a static Pod", zap.String("file", next.File), zap.Stringer("pod", nameOf(next.Pod)),
		zap.String("uid", string(next.Pod.UID)))
	s.saveLocked(i)
	s.addLocked(i, known)
	return true
}

// stopLocked ends a Pod like one that is deleted from the API: with its grace period.
func (s *Source) stopLocked(i *instance) {
	s.Log.Info("ending a static Pod", zap.String("file", i.File), zap.Stringer("pod", nameOf(i.Pod)),
		zap.String("uid", string(i.Pod.UID)))
	grace := ptr.Deref(i.Pod.Spec.TerminationGracePeriodSeconds, corev1.DefaultTerminationGracePeriodSeconds)
	pod := *i.Pod
	pod.DeletionTimestamp = ptr.To(metav1.NewTime(time.Now().Add(seconds.Of(grace))))
	pod.DeletionGracePeriodSeconds = &grace
	i.Pod, i.Stopping = &pod, true
	s.saveLocked(i)
	s.Set(i.Pod, true)
}

func (s *Source) addLocked(i *instance, known bool) {
	s.instances[i.Pod.UID] = i
	s.owned.Store(i.Pod.UID, nil)
	s.Set(i.Pod, known)
	s.queue.Add(nameOf(i.Pod))
}

// saveLocked writes the record of a Pod. A failure keeps no Pod from running, and the write is retried.
func (s *Source) saveLocked(i *instance) {
	err := s.records.save(i.Instance, i.startedAt)
	if i.unsaved = err != nil; i.unsaved {
		s.Log.Warn("an agent after this one might end the Pod at once, trying again", zap.Error(err))
	}
}

// report reports each problem of files once.
func (s *Source) report(problems []Problem) {
	now := map[string]string{}
	for _, p := range problems {
		now[p.File] = p.Message
		if s.said[p.File] == p.Message {
			continue
		}
		path := s.pathOf(p.File)
		s.Log.Warn("--pod-manifest-path: a file is not taken in as it is", zap.String("file", path),
			zap.String("problem", p.Message))
		s.Record(events.Warning(reasonManifest, "%s: %s", path, p.Message))
	}
	s.said = now
}

// Runs reports whether a Pod is a static Pod of the node. Workers may call it.
func (s *Source) Runs(uid types.UID) bool {
	_, found := s.owned.Load(uid)
	return found
}

// Gone notes that nothing of a Pod is left on the node: another one of its name may start.
func (s *Source) Gone(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.instances[uid]
	if i == nil {
		return
	}
	if err := s.records.remove(uid); err != nil {
		s.Log.Warn("a record is left, whose Pod is ended once more by the next agent", zap.Error(err))
	}
	delete(s.instances, uid)
	if s.Known(uid) {
		s.ended[uid] = true
	}
	s.owned.Delete(uid)
	s.Remove(uid)
	s.queue.Add(nameOf(i.Pod))
	s.wake()
}

// setStatusLocked sets the newest status of a static Pod, which is kept here, as the API keeps those of other Pods.
func (s *Source) setStatusLocked(i *instance, status corev1.PodStatus) {
	if apiequality.Semantic.DeepEqual(i.Pod.Status, status) {
		return
	}
	pod := *i.Pod
	pod.Status = status
	i.Pod = &pod
	s.Set(i.Pod, true)
}
