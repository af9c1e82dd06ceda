package events

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"keelson.dev/kit/lanes"
)

const (
	// atOnce is how many requests for single Events are under way at once.
	atOnce = 8
	// answerWait is how long a request may take.
	answerWait = 30 * time.Second
	// withoutBatches is how long Events are sent one by one to an apiserver that takes no batches from us: it may be of
	// an older version, and be replaced.
	withoutBatches = 5 * time.Minute
)

// sink sends rounds of Events to the apiserver.
type sink struct {
	events typedcorev1.EventInterface
	rest   rest.Interface
	// single is until when no batch is tried.
	single time.Time
}

// send returns what is left to be sent again. Names are ours, so an Event that is there has been written before.
func (s *sink) send(ctx context.Context, r round) round {
	left := round{creates: s.create(ctx, r.creates)}
	if len(left.creates) > 0 {
		left.patches = r.patches
		return left
	}
	left.patches = each(r.patches, func(w write) bool { return s.one(ctx, w) })
	return left
}

func (s *sink) create(ctx context.Context, writes []write) []write {
	if len(writes) == 0 {
		return nil
	}
	if !time.Now().Before(s.single) {
		left, err := s.batch(ctx, writes)
		switch {
		case err == nil:
			return left
		case passing(err):
			return writes
		case apierrors.IsMethodNotSupported(err), apierrors.IsNotFound(err), apierrors.IsForbidden(err):
			s.single = time.Now().Add(withoutBatches)
		}
	}
	return each(writes, func(w write) bool { return s.one(ctx, w) })
}

// batch sends new Events by one request, and returns those for which the apiserver had no time.
func (s *sink) batch(ctx context.Context, writes []write) ([]write, error) {
	list := &corev1.EventList{Items: make([]corev1.Event, len(writes))}
	for i, w := range writes {
		list.Items[i] = *w.event
		list.Items[i].ResourceVersion = ""
	}
	ctx, cancel := context.WithTimeout(ctx, answerWait)
	defer cancel()
	answer := &metav1.Status{}
	if err := s.rest.Post().Resource("events").Body(list).Do(ctx).Into(answer); err != nil {
		requests.WithLabelValues("batch", "failed").Inc()
		return nil, err
	}
	requests.WithLabelValues("batch", "done").Inc()
	batchSize.Observe(float64(len(writes)))
	if answer.Details == nil {
		return nil, nil
	}
	var left []write
	for _, cause := range answer.Details.Causes {
		var i int
		if _, err := fmt.Sscanf(cause.Field, "items[%d]", &i); err != nil || i < 0 || i >= len(writes) {
			continue
		}
		err := &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReason(cause.Type),
			Message: cause.Message}}
		if s.settled(err, cause.Type == corev1.NamespaceTerminatingCause, writes[i]) {
			continue
		}
		left = append(left, writes[i])
	}
	return left, nil
}

// one writes a single Event, and returns whether it is settled.
func (s *sink) one(ctx context.Context, w write) bool {
	ctx, cancel := context.WithTimeout(ctx, answerWait)
	defer cancel()
	var err error
	if w.again {
		_, err = s.events.PatchWithEventNamespaceWithContext(ctx, w.event, patch(w.event))
		requests.WithLabelValues("patch", outcome(err)).Inc()
	}
	// What is to be counted up may be gone.
	if !w.again || apierrors.IsNotFound(err) {
		e := *w.event
		e.ResourceVersion = ""
		_, err = s.events.CreateWithEventNamespaceWithContext(ctx, &e)
		requests.WithLabelValues("create", outcome(err)).Inc()
	}
	return err == nil || s.settled(err, apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause), w)
}

// settled reports whether there is nothing more to do about an Event that met err: it is there, or refused for good.
func (s *sink) settled(err error, ending bool, w write) bool {
	switch {
	case passing(err):
		return false
	case apierrors.IsAlreadyExists(err):
		return true
	case isNews(err, ending):
		klog.Background().Error(err, "An Event was refused", "event", klog.KObj(w.event), "reason", w.event.Reason)
	}
	dropped.WithLabelValues(refused).Inc()
	return true
}

// isNews reports whether a refusal is worth logging: one of an object that goes, or is gone, with its namespace is not.
func isNews(refusal error, ending bool) bool { return !ending && !apierrors.IsNotFound(refusal) }

// passing reports whether the same request may succeed later: the apiserver could not be reached, or had no time.
func passing(err error) bool {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err) ||
			apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err)
	}
	var wrong *rest.RequestConstructionError
	return !errors.As(err, &wrong)
}

// each does the writes, those about one object in order, and returns those that are not settled, with all that come
// after them about the same objects.
func each(writes []write, do func(write) (settled bool)) []write {
	settled := make([]bool, len(writes))
	lanes.Run(atOnce, len(writes), func(i int) object { return writes[i].about() }, func(i int) bool {
		settled[i] = do(writes[i])
		return settled[i]
	})
	var left []write
	for i, w := range writes {
		if !settled[i] {
			left = append(left, w)
		}
	}
	return slices.Clip(left)
}
