package usage

import (
	"maps"
	"slices"
	"testing"
	"time"
)

// at is a complete sample of that many seconds after now.
func at(seconds, cpu float64) Sample {
	return Sample{At: after(seconds), CPU: cpu, Memory: 100, hasCPU: true, hasMemory: true, StartedAt: after(-100)}
}

func after(seconds float64) time.Time { return now.Add(time.Duration(seconds * float64(time.Second))) }

func without(s Sample, change func(*Sample)) Sample {
	change(&s)
	return s
}

func TestRate(t *testing.T) {
	none := Usage{}
	for name, row := range map[string]struct {
		earlier, later Sample
		want           Usage
	}{
		"half a core": {at(0, 10), at(20, 20), Usage{At: after(20), Window: 20 * time.Second, Cores: 0.5,
			Memory: 100}},
		"idle": {at(0, 10), at(20, 10), Usage{At: after(20), Window: 20 * time.Second,
			Memory: 100}},
		"the shortest window": {at(0, 10), at(1, 12), Usage{At: after(1), Window: time.Second, Cores: 2,
			Memory: 100}},
		"too short":                {at(0, 10), at(0.999, 12), none},
		"two at the same time":     {at(5, 10), at(5, 10), none},
		"a clock that went back":   {at(20, 10), at(0, 20), none},
		"a counter that went back": {at(0, 10), at(20, 9.9), none},
		"no earlier":               {Sample{}, at(20, 20), none},
		"no later":                 {at(0, 10), Sample{}, none},
		"no memory":                {at(0, 10), without(at(20, 20), func(s *Sample) { s.hasMemory = false }), none},
		"no CPU":                   {at(0, 10), without(at(20, 20), func(s *Sample) { s.hasCPU = false }), none},
		"more than any machine":    {at(0, 0), at(1, 1<<20+1), none},
	} {
		got, ok := rate(row.earlier, row.later)
		if !ok {
			got = none
		}
		if got != row.want || ok != (row.want != none) {
			t.Errorf("%s: %+v, %v, want %+v", name, got, ok, row.want)
		}
	}
	if _, ok := rate(at(0, 0), at(1, 1<<20)); !ok {
		t.Error("as many cores as may be: no rate")
	}
}

func TestReadingsOfPods(t *testing.T) {
	web := PodName{"ns", "web"}
	started := func(s Sample, seconds float64) Sample {
		s.StartedAt = after(seconds)
		return s
	}
	type pods = map[PodName]Containers
	for name, row := range map[string]struct {
		earlier, later pods
		want           map[string]float64
	}{
		"two containers": {pods{web: {"a": at(0, 0), "b": at(0, 5)}}, pods{web: {"a": at(10, 10), "b": at(10, 10)}},
			map[string]float64{"a": 1, "b": 0.5}},
		"restarted, with less CPU": {pods{web: {"a": at(0, 100)}}, pods{web: {"a": started(at(10, 3), 4)}},
			map[string]float64{"a": 0.5}},
		"restarted, with more CPU": {pods{web: {"a": at(0, 1)}}, pods{web: {"a": started(at(10, 3), 4)}},
			map[string]float64{"a": 0.5}},
		"restarted a moment ago": {pods{web: {"a": at(0, 1)}}, pods{web: {"a": started(at(10, 3), 9.5)}}, nil},
		"started in between":     {pods{}, pods{web: {"a": started(at(10, 8), 2)}}, map[string]float64{"a": 1}},
		"missing in the earlier": {pods{}, pods{web: {"a": at(10, 8)}}, nil},
		"started in the future":  {pods{}, pods{web: {"a": started(at(10, 8), 20)}}, nil},
		"missing in the later":   {pods{web: {"a": at(0, 1)}}, pods{}, nil},
		"a container has ended": {pods{web: {"a": at(0, 0), "b": at(0, 0)}}, pods{web: {"a": at(10, 10)}},
			map[string]float64{"a": 1}},
		"one of two unknown": {pods{web: {"a": at(0, 0)}}, pods{web: {"a": at(10, 10), "b": at(10, 10)}}, nil},
		"another Pod's":      {pods{{"other", "web"}: {"a": at(0, 0)}}, pods{{"other", "web"}: {"a": at(10, 10)}}, nil},
	} {
		readings := Readings{&Reading{At: after(0), Pods: row.earlier}, &Reading{At: after(10), Pods: row.later}}
		got, ok := readings.Pod(web)
		cores := map[string]float64{}
		for container, usage := range got {
			cores[container] = usage.Cores
		}
		if ok != (row.want != nil) || !maps.Equal(cores, row.want) {
			t.Errorf("%s: %v, %v, want %v", name, cores, ok, row.want)
		}
	}
	if _, ok := (Readings{Later: &Reading{Pods: pods{web: {"a": at(0, 0)}}}}).Pod(web); ok {
		t.Error("one reading makes a rate of a Pod")
	}
	if _, ok := (Readings{Later: &Reading{Node: at(0, 0)}}).Node(); ok {
		t.Error("one reading makes a rate of a node")
	}
	node, ok := Readings{&Reading{Node: at(0, 0)}, &Reading{Node: at(10, 20)}}.Node()
	if !ok || node.Cores != 2 || node.Memory != 100 {
		t.Errorf("node %+v, %v", node, ok)
	}
}

// What is known of a node over time: each step is what happens so many seconds after the start.
func TestKnown(t *testing.T) {
	answer, silence := "answer", "silence"
	for name, row := range map[string]struct {
		steps map[float64]string
		again []float64 // the answers that ask for another at once
		at    float64
		due   bool
		shown []float64 // the times of the readings that are shown
	}{
		"nothing yet": {nil, nil, 0, true, nil},
		"one answer":  {map[float64]string{0: answer}, []float64{0}, 1, false, nil},
		"two answers": {map[float64]string{0: answer, 2: answer}, []float64{0}, 3, false, []float64{0, 2}},
		"still fresh": {map[float64]string{0: answer, 2: answer}, []float64{0}, 16.9, false,
			[]float64{0, 2}},
		"not fresh any more": {map[float64]string{0: answer, 2: answer}, []float64{0}, 17, true, []float64{0, 2}},
		"nearly of the past": {map[float64]string{0: answer, 2: answer}, []float64{0}, 61.9, true, []float64{0, 2}},
		"of the past":        {map[float64]string{0: answer, 2: answer}, []float64{0}, 62, true, nil},
		"the next": {map[float64]string{0: answer, 2: answer, 20: answer}, []float64{0}, 21, false,
			[]float64{2, 20}},
		"the next after a while": {map[float64]string{0: answer, 2: answer, 61.9: answer}, []float64{0}, 62, false,
			[]float64{2, 61.9}},
		"the next, too late": {map[float64]string{0: answer, 2: answer, 62: answer}, []float64{0, 62}, 63, false,
			nil},
		"silent":               {map[float64]string{0: silence}, nil, 14.9, false, nil},
		"silent, a while ago":  {map[float64]string{0: silence}, nil, 15, true, nil},
		"silent after answers": {map[float64]string{0: answer, 2: answer, 20: silence}, []float64{0}, 21, false, nil},
		"silent in between": {map[float64]string{0: answer, 2: answer, 20: silence, 36: answer}, []float64{0}, 37,
			false,
			[]float64{2, 36}},
		"silent instead of the second": {map[float64]string{0: answer, 2: silence, 20: answer}, []float64{0}, 21, false,
			[]float64{0, 20}},
	} {
		var k known
		var again []float64
		for _, second := range slices.Sorted(maps.Keys(row.steps)) {
			if row.steps[second] == silence {
				k.miss(after(second))
			} else if k.take(&Reading{At: after(second)}, after(second)) {
				again = append(again, second)
			}
		}
		var shown []float64
		if readings, ok := k.usable(after(row.at)); ok {
			shown = []float64{readings.Earlier.At.Sub(now).Seconds(), readings.Later.At.Sub(now).Seconds()}
		}
		if due := k.due(after(row.at)); due != row.due || !slices.Equal(again, row.again) ||
			!slices.Equal(shown, row.shown) {
			t.Errorf("%s: due %v, shown %v, again %v", name, due, shown, again)
		}
	}
	k := known{wantedAt: now}
	if k.idle(after(119.9)) || !k.idle(after(120)) {
		t.Error("what nobody asked for is kept for two minutes")
	}
}

func TestResources(t *testing.T) {
	got := Usage{Cores: 0.25, Memory: 64 << 20}.Resources()
	if got.Cpu().MilliValue() != 250 || got.Memory().String() != "64Mi" {
		t.Errorf("%v", got)
	}
}
