package events

import (
	"encoding/json"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
)

const (
	// remembered is how many Events are known again, to count them up.
	remembered = 4096
	// alike is how many Events that differ in their messages only are written within alikeSeconds; more become one.
	alike, alikeSeconds = 10, 600
	// burst is how many Events one source may write about one object, and refill how many more in each second.
	burst, refill = 25, 1. / 300
)

// correlator counts up what repeats, joins what is alike and drops a flood about one object, as client-go's
// EventCorrelator does. That one works a patch out for each repetition; here only those that are sent have one.
type correlator struct {
	aggregator *record.EventAggregator
	flood      *record.EventSourceObjectSpamFilter
	// seen holds the first occurrence of an Event and how often it has occurred.
	seen *lru.Cache
}

type occurrence struct {
	name  string
	first metav1.Time
	count int32
}

func newCorrelator() *correlator {
	now := clock.RealClock{}
	return &correlator{
		aggregator: record.NewEventAggregator(remembered, record.EventAggregatorByReasonFunc,
			record.EventAggregatorByReasonMessageFunc, alike, alikeSeconds, now),
		flood: record.NewEventSourceObjectSpamFilter(remembered, burst, refill, now, streamOf),
		seen:  lru.New(remembered),
	}
}

// correlate returns what to write about the Event; false if nothing is.
func (c *correlator) correlate(e *corev1.Event) (write, bool) {
	e, key := c.aggregator.EventAggregate(e)
	again := false
	if known, ok := c.seen.Get(key); ok {
		earlier := known.(occurrence)
		next := *e
		next.Name, next.FirstTimestamp, next.Count = earlier.name, earlier.first, earlier.count+1
		e, again = &next, true
	}
	c.seen.Add(key, occurrence{e.Name, e.FirstTimestamp, e.Count})
	if c.flood.Filter(e) {
		return write{}, false
	}
	return write{event: e, again: again}, true
}

// streamOf names what a flood is recognized by: the source, the object and the Event's type.
func streamOf(e *corev1.Event) string {
	about := &e.InvolvedObject
	return strings.Join([]string{e.Source.Component, e.Source.Host, about.Kind, about.Namespace, about.Name,
		string(about.UID), about.APIVersion, e.Type}, "\x00")
}

// patch is what counts an Event up.
func patch(e *corev1.Event) []byte {
	// Encoding numbers and texts into memory cannot fail.
	encoded, _ := json.Marshal(struct {
		Count         int32       `json:"count"`
		LastTimestamp metav1.Time `json:"lastTimestamp"`
		Message       string      `json:"message,omitempty"`
	}{e.Count, e.LastTimestamp, e.Message})
	return encoded
}
