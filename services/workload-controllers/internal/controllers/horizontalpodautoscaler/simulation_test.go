package horizontalpodautoscaler

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/utils/ptr"
)

var errInjected = errors.New("injected")

// scaling is an autoscaler and its target. The controller sees a delayed copy of the autoscaler, and the current
// scale; the target follows its scale in its own time.
type scaling struct {
	*testing.T
	random           *rand.Rand
	now              time.Time
	autoscaler, seen *autoscalingv2.HorizontalPodAutoscaler
	wanted, there    int32 // the scale's spec and status
	load             float64
	history          History
	asked            []asked
	rescales         int
	faulty           bool
	log              []string
}

// asked is how many replicas the load asked for at a time, and how few there have been since.
type asked struct {
	at           time.Time
	load, lowest int32
}

func newScaling(t *testing.T, seed uint64) *scaling {
	in := behaved(3, 0, nil)
	in.Autoscaler.Spec.MinReplicas, in.Autoscaler.Spec.MaxReplicas = ptr.To[int32](2), 20
	return &scaling{T: t, random: rand.New(rand.NewPCG(seed, 3)), now: now, autoscaler: in.Autoscaler,
		seen: in.Autoscaler, wanted: 3, there: 3, load: 3, faulty: true}
}

func (s *scaling) note(format string, args ...any) {
	s.log = append(s.log, fmt.Sprintf("%v ", s.now.Sub(now))+fmt.Sprintf(format, args...))
}

func (s *scaling) fail(format string, args ...any) {
	s.Helper()
	s.Fatalf("%s\nwhat happened last:\n%s", fmt.Sprintf(format, args...), strings.Join(s.log[max(0, len(s.log)-30):],
		"\n"))
}

// happens reports whether a fault occurs, with a probability of one in once.
func (s *scaling) happens(once int) bool { return s.faulty && s.random.IntN(once) == 0 }

// pass is one pass of the controller, which carries out its plan as apply does.
func (s *scaling) pass() {
	in := Input{Now: s.now, Settings: DefaultSettings(), Autoscaler: s.seen, History: s.history}
	in = sized(in, s.wanted)
	in.Target.Scale.Status.Replicas = s.there
	if in.NeedsMetrics() {
		if in.Readings = []Reading{{Value: s.load * 1000}}; s.happens(8) {
			in.Readings[0] = Reading{Err: errInjected}
		}
	}
	plan := Decide(in)
	if r := plan.Rescale; r != nil {
		if s.happens(8) {
			s.note("somebody else scales")
			s.wanted = in.least() + s.random.Int32N(in.most()-in.least()+1)
			return
		}
		var err error
		if s.happens(8) {
			err = errInjected
		} else {
			s.rescale(in, r)
		}
		if s.happens(8) {
			s.note("the controller begins anew")
			s.history = History{}
			return
		}
		if s.happens(8) {
			err = errInjected // The answer is lost.
		}
		plan = Settle(in, plan, err)
	}
	s.history = plan.History
	if len(in.Readings) > 0 && in.Readings[0].Err == nil {
		s.asked = append(s.asked, asked{s.now, int32(math.Ceil(s.load / 1.1)), s.wanted})
	}
	if s.seen == s.autoscaler && !s.happens(8) {
		s.autoscaler = s.autoscaler.DeepCopy()
		s.autoscaler.Status = plan.Status
	}
}

// rescale is what a scale meets that the server takes.
func (s *scaling) rescale(in Input, r *Rescale) {
	s.note("from %d to %d: %s; load %.1f", r.From, r.To, r.Reason, s.load)
	if r.To < in.least() || r.To > in.most() {
		s.fail("%d replicas of %d to %d", r.To, in.least(), in.most())
	}
	for _, a := range s.asked {
		if r.Reason == "All metrics below target" && s.now.Sub(a.at) < 5*time.Minute &&
			r.To < min(a.load, a.lowest, in.most()) {
			s.fail("down to %d, %v after the load asked for %d", r.To, s.now.Sub(a.at), a.load)
		}
	}
	s.rescales++
	s.wanted = r.To
}

// count notes how many replicas there are.
func (s *scaling) count() {
	for i := range s.asked {
		s.asked[i].lowest = min(s.asked[i].lowest, s.wanted)
	}
}

// step advances the time and lets a random event happen.
func (s *scaling) step() {
	s.now = s.now.Add(time.Duration(1+s.random.IntN(30)) * time.Second)
	switch s.random.IntN(8) {
	case 0:
		s.load = s.random.Float64() * 25
	case 1:
		s.seen = s.autoscaler
	case 2:
		if s.random.IntN(5) == 0 {
			next := s.autoscaler.DeepCopy()
			next.Spec.MinReplicas = ptr.To(1 + s.random.Int32N(5))
			next.Spec.MaxReplicas = *next.Spec.MinReplicas + s.random.Int32N(20)
			next.Generation++
			s.autoscaler = next
			s.note("user: %d to %d", *next.Spec.MinReplicas, next.Spec.MaxReplicas)
		}
	case 3, 4:
		s.there = s.wanted
	default:
		s.pass()
	}
	s.count()
}

// TestScalesThroughFailures: despite refused, lost and late requests, other clients that scale, and restarts of the
// controller, the replicas stay within the bounds, and never fall below what the load asked for within the last five
// minutes. In the end there are as many as the load asks for, and they stay.
//
// DEP-210 DEP-211
func TestScalesThroughFailures(t *testing.T) {
	for seed := range uint64(300) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			s := newScaling(t, seed)
			for range 600 {
				s.step()
			}
			s.faulty, s.load = false, s.random.Float64()*25
			turns, before := 0, 0
			for range 80 {
				from := s.wanted
				s.now, s.seen = s.now.Add(15*time.Second), s.autoscaler
				s.pass()
				s.count()
				if s.there = s.wanted; s.wanted != from {
					up := 1
					if s.wanted < from {
						up = -1
					}
					if up == -before {
						turns++
					}
					before = up
				}
			}
			quiet := s.rescales
			for range 40 {
				s.now, s.seen = s.now.Add(15*time.Second), s.autoscaler
				s.pass()
			}
			least, most := *s.autoscaler.Spec.MinReplicas, s.autoscaler.Spec.MaxReplicas
			low := max(least, min(most, int32(math.Floor(s.load/1.1))))
			high := max(least, min(most, int32(math.Ceil(s.load/0.9))))
			if s.rescales != quiet || turns > 1 || s.wanted < low || s.wanted > high {
				s.fail("%d replicas for a load of %.1f, %d turns, %d rescales at rest", s.wanted, s.load, turns,
					s.rescales-quiet)
			}
		})
	}
}
