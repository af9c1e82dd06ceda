package diskusage

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/kit/wakeup"
	"keelson.dev/services/nodeagent/internal/runtime"
)

// What a survey stands for, and what it may take: after one that took long the pause is restFactor times that, because
// the node's disk belongs to the Pods. Who asks before the first one has ended waits for it no longer than patience.
const (
	fresh      = time.Minute
	restFactor = 10
	lasts      = 30 * time.Second
	patience   = time.Second
)

// SurveyConfig is what a Survey works with.
type SurveyConfig struct {
	Log   *zap.Logger
	Meter Meter
	// Pods returns those of the node.
	Pods func() []*corev1.Pod
	// Folder returns where a volume of a Pod lies; false for one of which the node does not tell what it holds.
	Folder func(pod *corev1.Pod, volume *corev1.Volume) (string, bool)
	// Images describes the file system of the images.
	Images func(ctx context.Context) (runtime.ImageFs, error)
}

// Found is what a survey has found. Nobody changes it.
type Found struct {
	// At is when it ended.
	At   time.Time
	Pods map[types.UID]Parcel
	// Images is nil if it could not be had.
	Images *Images
}

// Images is the file system of the images, with what these take as far as the runtime says it.
type Images struct {
	Space
	runtime.ImageFs
}

// Parcel is what one Pod was found to take, by container and by volume. What is not there, or could not be measured
// wholly, is missing.
type Parcel struct {
	Logs, Layers map[string]Usage
	Volumes      map[string]Volume
	// Total is of all that goes away with the Pod; nil if a part of it could not be measured wholly.
	Total *Usage
}

// Volume is what a volume holds, and what its file system has.
type Volume struct {
	Usage
	Space
}

// Survey measures what all Pods take, but only after somebody has asked, and not for each who asks. Make it with
// NewSurvey.
type Survey struct {
	config SurveyConfig
	wanted wakeup.Signal
	first  chan struct{} // closed when the first survey has ended

	mu    sync.Mutex // guards all below
	found *Found
	until time.Time
}

// NewSurvey makes a Survey that knows nothing yet.
func NewSurvey(c SurveyConfig) *Survey {
	return &Survey{config: c, wanted: wakeup.New(), first: make(chan struct{})}
}

// Known returns what the last survey has found, nil if none has ended yet, and has the next one begin if that is old.
func (s *Survey) Known() *Found {
	found, old := s.last()
	if old {
		s.wanted.Send()
	}
	return found
}

// Latest is Known that waits for the first survey as long as ctx and patience allow.
func (s *Survey) Latest(ctx context.Context) *Found {
	if found := s.Known(); found != nil {
		return found
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case <-s.first:
	case <-ctx.Done():
	}
	found, _ := s.last()
	return found
}

func (s *Survey) last() (found *Found, old bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.found, !time.Now().Before(s.until)
}

// Run measures when somebody has asked, until ctx ends.
func (s *Survey) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.wanted:
		}
		if _, old := s.last(); !old {
			continue // asked for while the last one was under way
		}
		began := time.Now()
		found := s.look(ctx)
		if ctx.Err() != nil {
			return
		}
		s.mu.Lock()
		isFirst := s.found == nil
		s.found, s.until = found, found.At.Add(max(fresh, restFactor*found.At.Sub(began)))
		s.mu.Unlock()
		if isFirst {
			close(s.first)
		}
	}
}

// look measures all Pods, as far as time allows.
func (s *Survey) look(ctx context.Context) *Found {
	bounded, cancel := context.WithTimeout(ctx, lasts)
	defer cancel()
	found := &Found{Pods: map[types.UID]Parcel{}}
	images, err := s.images(bounded)
	if found.Images = images; err != nil && ctx.Err() == nil {
		s.config.Log.Warn("asking for the file system of the images failed", zap.Error(err))
	}
	for _, pod := range s.config.Pods() {
		parcel, err := s.parcel(bounded, pod)
		if err != nil && ctx.Err() == nil {
			s.config.Log.Warn("measuring what a Pod takes of the disk failed in part",
				zap.String("namespace", pod.Namespace), zap.String("pod", pod.Name), zap.Error(err))
		}
		found.Pods[pod.UID] = parcel
	}
	found.At = time.Now()
	return found
}

func (s *Survey) images(ctx context.Context) (*Images, error) {
	fs, err := s.config.Images(ctx)
	if err != nil {
		return nil, err
	}
	space, err := SpaceOf(fs.Dir)
	if err != nil {
		return nil, err
	}
	return &Images{Space: space, ImageFs: fs}, nil
}

// parcel measures one Pod. It returns what it has found with the errors about the rest.
func (s *Survey) parcel(ctx context.Context, pod *corev1.Pod) (Parcel, error) {
	m := s.config.Meter
	out := Parcel{Logs: map[string]Usage{}, Volumes: map[string]Volume{}}
	sum, whole := Usage{}, true
	var problems []error
	layers, err := m.newestLayers(ctx, pod)
	if out.Layers = layers; err != nil {
		problems, whole = append(problems, err), false
	}
	for _, usage := range layers {
		sum = sum.Add(usage)
	}
	for _, name := range containers(&pod.Spec) {
		usage, err := m.logs(ctx, pod, name, Bound)
		if err != nil || !usage.whole() {
			problems, whole = append(problems, err), false
			continue
		}
		if sum = sum.Add(usage); usage.Inodes > 0 {
			out.Logs[name] = usage
		}
	}
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		found, err := s.volume(ctx, pod, v)
		if found == nil || err != nil {
			problems, whole = append(problems, err), whole && !OnDisk(v)
			continue
		}
		if out.Volumes[v.Name] = *found; OnDisk(v) {
			sum = sum.Add(found.Usage)
		}
	}
	if whole {
		out.Total = &sum
	}
	return out, errors.Join(problems...)
}

// volume returns nil for a volume of which nothing can be told.
func (s *Survey) volume(ctx context.Context, pod *corev1.Pod, v *corev1.Volume) (*Volume, error) {
	dir, known := s.config.Folder(pod, v)
	if !known {
		return nil, nil
	}
	usage, err := Folder(ctx, dir, Bound)
	if err != nil || !usage.whole() || usage.Inodes == 0 { // or it is not there yet
		return nil, err
	}
	space, err := SpaceOf(dir)
	if err != nil {
		return nil, err
	}
	return &Volume{Usage: usage, Space: space}, nil
}

// whole reports whether a measurement within Bound has seen everything.
func (u Usage) whole() bool { return !u.TooDeep && u.Inodes <= Bound.Inodes }

// containers names all containers of a Pod.
func containers(spec *corev1.PodSpec) []string {
	var names []string
	for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			names = append(names, list[i].Name)
		}
	}
	for i := range spec.EphemeralContainers {
		names = append(names, spec.EphemeralContainers[i].Name)
	}
	return names
}
