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

// fresh is how long a survey's result is used, lasts bounds a survey, and restFactor is how many times its duration
// the pause after it takes, because the node's disk belongs to the Pods. patience bounds the wait for the first
// survey.
const (
	fresh      = time.Minute
	restFactor = 10
	lasts      = 30 * time.Second
	patience   = time.Second
)

// SurveyConfig is what a Survey needs.
type SurveyConfig struct {
	Log   *zap.Logger
	Meter Meter
	// Pods returns the Pods of the node.
	Pods func() []*corev1.Pod
	// Folder returns the folder of a volume of a Pod; false for a volume whose contents the node does not measure.
	Folder func(pod *corev1.Pod, volume *corev1.Volume) (string, bool)
	// Images describes the file system of the images.
	Images func(ctx context.Context) (runtime.ImageFs, error)
}

// Found is the result of a survey. It is never changed.
type Found struct {
	// At is when the survey ended.
	At   time.Time
	Pods map[types.UID]Parcel
	// Images is nil if the runtime did not report it.
	Images *Images
}

// Images is the file system of the images, with what the images use as far as the runtime reports it.
type Images struct {
	Space
	runtime.ImageFs
}

// Parcel is how much one Pod uses, by container and by volume. Missing parts, and those that could not be measured
// completely, are left out.
type Parcel struct {
	Logs, Layers map[string]Usage
	Volumes      map[string]Volume
	// Total is the sum of all that is removed with the Pod; nil if a part of it could not be measured completely.
	Total *Usage
}

// Volume is what a volume holds, and the size of its file system.
type Volume struct {
	Usage
	Space
}

// Survey measures what all Pods use, but only after a request, and not for each request. Create it with NewSurvey.
type Survey struct {
	config SurveyConfig
	wanted wakeup.Signal
	first  chan struct{} // closed when the first survey has ended

	mu    sync.Mutex // guards all fields below
	found *Found
	until time.Time
}

// NewSurvey returns a Survey without a result yet.
func NewSurvey(c SurveyConfig) *Survey {
	return &Survey{config: c, wanted: wakeup.New(), first: make(chan struct{})}
}

// Known returns the result of the last survey, nil if none has ended yet, and starts the next one if that is old.
func (s *Survey) Known() *Found {
	found, old := s.last()
	if old {
		s.wanted.Send()
	}
	return found
}

// Latest is Known, but waits for the first survey as long as ctx and patience allow.
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

// Run measures on request until ctx ends.
func (s *Survey) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.wanted:
		}
		if _, old := s.last(); !old {
			continue // requested while the last one was under way
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

// volume returns nil for a volume that is not measured.
func (s *Survey) volume(ctx context.Context, pod *corev1.Pod, v *corev1.Volume) (*Volume, error) {
	dir, known := s.config.Folder(pod, v)
	if !known {
		return nil, nil
	}
	usage, err := Folder(ctx, dir, Bound)
	if err != nil || !usage.whole() || usage.Inodes == 0 { // or it does not exist yet
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
