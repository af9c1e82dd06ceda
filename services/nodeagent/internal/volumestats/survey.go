// Package volumestats asks CSI drivers how full the published volumes of Pods are, and whether they are in order.
//
// It asks when somebody wants to know, about each volume once however many Pods share it, and not again for a while.
// Nobody waits for a driver longer than a moment: readers get the last answers. A call that hangs delays the answers
// about its own volume and, together with others like it, those of its driver.
package volumestats

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/kit/backoff"
	"keelson.dev/kit/wakeup"
	"keelson.dev/services/nodeagent/internal/csiplugin"
	"keelson.dev/services/nodeagent/internal/csivolume"
)

const (
	// patience bounds how long a reader waits for the first answers about volumes.
	patience = time.Second
	// callTimeout bounds one call, parallel the calls of one driver at a time.
	callTimeout = 30 * time.Second
	parallel    = 4
)

// again is the back-off after failed calls. A driver may not notice that a call was given up, and each is one more that
// hangs in it.
var again = backoff.Policy{First: fresh, Max: 10 * time.Minute}

// Driver is the part of a driver that this package needs.
type Driver interface {
	Can() csiplugin.Capabilities
	Stats(ctx context.Context, request *csi.NodeGetVolumeStatsRequest) (*csi.NodeGetVolumeStatsResponse, error)
}

// Config is what a Survey needs.
type Config struct {
	Log *zap.Logger
	// Volumes returns the published volumes of all Pods.
	Volumes func() []csivolume.Standing
	// Driver returns a driver that is registered on this node.
	Driver func(name string) (Driver, error)
	// Abnormal is called for each Pod with a volume that has ceased to be in order, with the driver's words. It must
	// not block.
	Abnormal func(pod types.UID, volume, message string)
}

// Survey has the last answers. Its methods are safe for concurrent use.
type Survey struct {
	Config
	wanted wakeup.Signal

	mu      sync.Mutex // guards the fields below
	volumes map[id]*volume
	turns   map[string]chan struct{}
}

// id identifies one volume of one driver.
type id struct{ driver, handle string }

// volume is what is known about one volume. Survey.mu guards it.
type volume struct {
	// figures are the last answer; nil before the first.
	figures *Figures
	asking  bool
	// nextAt is when the driver may be asked again.
	nextAt   time.Time
	failures int
	// answered is closed at the end of the next call.
	answered chan struct{}
	// waited means that readers have waited in vain since the last answer: they do not wait again.
	waited bool
}

// New returns a Survey that knows nothing yet.
func New(config Config) *Survey {
	return &Survey{Config: config, wanted: wakeup.New(), volumes: map[id]*volume{}, turns: map[string]chan struct{}{}}
}

// Known returns the last answers at once. Run replaces those that are old.
func (s *Survey) Known() Answers {
	found, _ := s.look()
	return found
}

// Latest is Known, but waits a moment for the first answers about volumes, once for each volume.
func (s *Survey) Latest(ctx context.Context) Answers {
	found, missing := s.look()
	if len(missing) == 0 {
		return found
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for _, v := range missing {
		select {
		case <-v.answered:
		case <-ctx.Done():
		}
	}
	s.mu.Lock()
	for _, v := range missing {
		v.waited = !v.answers(time.Now())
	}
	s.mu.Unlock()
	return s.Known()
}

// awaited is a volume of which a reader may await the first answer.
type awaited struct {
	*volume
	answered chan struct{}
}

// look returns the last answers, and the volumes without any for which it is worth waiting. It wakes Run if there is
// something to ask.
func (s *Survey) look() (known Answers, missing []awaited) {
	standing := s.Volumes()
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.take(standing)
	found, waking := map[place]Figures{}, false
	seen := map[*volume]bool{}
	for _, of := range standing {
		v := s.volumes[id{of.Driver, of.Handle}]
		if v == nil {
			continue
		}
		if v.answers(now) {
			found[placeOf(of)] = *v.figures
		} else if !v.waited && !seen[v] && (v.asking || v.due(now)) {
			missing = append(missing, awaited{v, v.answered})
		}
		seen[v] = true
		waking = waking || v.due(now)
	}
	if waking {
		s.wanted.Send()
	}
	return answers(found), missing
}

// answers reports whether there is an answer to pass on.
func (v *volume) answers(now time.Time) bool {
	return v.figures != nil && now.Sub(v.figures.At) < stale
}

func (v *volume) due(now time.Time) bool { return !v.asking && !now.Before(v.nextAt) }

// take makes the volumes known that drivers can be asked about, and forgets those that no Pod has any more. While a
// driver is away, the last answers stay.
func (s *Survey) take(standing []csivolume.Standing) {
	before := s.volumes
	s.volumes = map[id]*volume{}
	for _, of := range standing {
		key := id{of.Driver, of.Handle}
		switch known := before[key]; {
		case known != nil:
			s.volumes[key] = known
		case s.volumes[key] == nil && s.tells(of.Driver):
			s.volumes[key] = &volume{answered: make(chan struct{})}
		}
	}
}

// tells reports whether a driver is registered that can be asked.
func (s *Survey) tells(name string) bool {
	driver, err := s.Driver(name)
	return err == nil && driver.Can().Stats
}

// Run asks drivers until ctx ends.
func (s *Survey) Run(ctx context.Context) {
	var asking sync.WaitGroup
	defer asking.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.wanted:
		}
		for _, of := range s.begin() {
			asking.Go(func() { s.ask(ctx, of) })
		}
	}
}

// question is one call that is to be made.
type question struct {
	id
	of *volume
	// turn is a place among the calls of the driver.
	turn chan struct{}
}

// begin returns the calls that are due, one for each volume, and notes that they are being made.
func (s *Survey) begin() []question {
	standing := s.Volumes()
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []question
	for _, of := range standing {
		key := id{of.Driver, of.Handle}
		v := s.volumes[key]
		if v == nil || !v.due(now) {
			continue
		}
		turn := s.turns[of.Driver]
		if turn == nil {
			turn = make(chan struct{}, parallel)
			s.turns[of.Driver] = turn
		}
		v.asking = true
		out = append(out, question{key, v, turn})
	}
	return out
}

// ask makes one call.
func (s *Survey) ask(ctx context.Context, q question) {
	select {
	case q.turn <- struct{}{}:
	case <-ctx.Done():
		return
	}
	defer func() { <-q.turn }()
	asked := time.Now()
	standing := s.standing(q.id)
	if len(standing) == 0 {
		s.leave(q)
		return
	}
	about := standing[0]
	answer, err := s.call(ctx, about)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		s.fail(q, err)
	case !slices.Contains(s.standing(q.id), about):
		s.leave(q) // it was unpublished meanwhile, and the answer may be about what was below
	default:
		s.store(q, answer, asked)
	}
}

// standing returns the Pods' instances of one volume.
func (s *Survey) standing(of id) []csivolume.Standing {
	return slices.DeleteFunc(s.Volumes(), func(v csivolume.Standing) bool { return id{v.Driver, v.Handle} != of })
}

// call calls a driver about a volume.
func (s *Survey) call(ctx context.Context, about csivolume.Standing) (Figures, error) {
	driver, err := s.Driver(about.Driver)
	if err != nil {
		return Figures{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	answer, err := driver.Stats(ctx, &csi.NodeGetVolumeStatsRequest{VolumeId: about.Handle, VolumePath: about.Target,
		StagingTargetPath: about.Staging})
	return figuresOf(answer, driver.Can().Condition, time.Now()), err
}

// leave notes that a call has no result.
func (s *Survey) leave(q question) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q.of.end(time.Now())
}

// fail notes that there is no answer. The last one stays.
func (s *Survey) fail(q question, err error) {
	s.mu.Lock()
	v := q.of
	v.failures++
	first := v.failures == 1
	v.end(time.Now().Add(again.Delay(v.failures)))
	s.mu.Unlock()
	if first {
		s.Log.Warn("a CSI driver does not say how full a volume is", zap.String("driver", q.driver),
			zap.String("volume", q.handle), zap.Error(err))
	}
}

// end notes the end of a call. Survey.mu is held.
func (v *volume) end(nextAt time.Time) {
	v.asking, v.nextAt = false, nextAt
	close(v.answered)
	v.answered = make(chan struct{})
}

// store keeps an answer, and reports a volume that has ceased to be in order.
func (s *Survey) store(q question, answer Figures, asked time.Time) {
	s.mu.Lock()
	v := q.of
	before := v.figures
	v.figures, v.failures, v.waited = &answer, 0, false
	v.end(nextAfter(asked, answer.At))
	s.mu.Unlock()
	if !worsened(before, answer) {
		return
	}
	for _, of := range s.standing(q.id) {
		s.Abnormal(of.Pod, of.Name, answer.Condition.Message)
	}
}
