package aggregation

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"keelson.dev/kit/contained"
)

const (
	// workers is how many servers are asked at a time: one that hangs keeps one of them for checkTimeout.
	workers = 16
	// checking is what breaks off where a check does.
	checking = "checking an APIService"
)

// Close ends what New began, where Run is not called.
func (a *Aggregator) Close() { a.queue.ShutDown() }

// Run asks the servers whether they answer until ctx ends.
func (a *Aggregator) Run(ctx context.Context) {
	var working contained.Group
	for range workers {
		working.Go(checking, func() {
			for a.next(ctx) {
			}
		}, nil)
	}
	<-ctx.Done()
	a.queue.ShutDown()
	working.Wait()
}

// next looks at one APIService; false if the queue is closed.
func (a *Aggregator) next(ctx context.Context) bool {
	name, closed := a.queue.Get()
	if closed {
		return false
	}
	defer a.queue.Done(name)
	var again recheck
	var err error
	if broken := contained.Do(checking, func() { again, err = a.check(ctx, name) }); broken != nil {
		err = broken
	}
	switch {
	case err != nil || again == retry:
		// Another apiserver that was faster is no news.
		if err != nil && ctx.Err() == nil && !apierrors.IsConflict(err) {
			a.Log.Warn(checking, zap.String("name", name), zap.Error(err))
		}
		a.queue.AddRateLimited(name)
	case again == later:
		a.queue.Forget(name)
		a.queue.AddAfter(name, checkInterval)
	default:
		a.queue.Forget(name)
	}
	return true
}

// recheck says when an APIService is looked at again.
type recheck int

const (
	never recheck = iota
	later
	retry
)

// check asks the server behind an APIService and writes down what came of it.
func (a *Aggregator) check(ctx context.Context, name string) (recheck, error) {
	e := a.find(name)
	if e == nil {
		return never, nil
	}
	verdict := a.verdict(ctx, e)
	if err := a.write(ctx, e, verdict); err != nil {
		return retry, err
	}
	switch {
	case e.local:
		return never, nil
	case verdict.Status == apiregistration.ConditionTrue:
		return later, nil
	}
	return retry, nil
}

// verdict finds out whether the server of e answers, and tells clients of what it serves.
func (a *Aggregator) verdict(ctx context.Context, e *extension) Verdict {
	if e.local {
		return a.local(e)
	}
	host, verdict := e.target(ctx, a.Objects)
	if host == "" {
		a.answered(e, nil, fmt.Errorf("no endpoint: %s", verdict.Message))
		return verdict
	}
	resources, err := e.ask(ctx, host)
	a.answered(e, resources, err)
	if err != nil {
		return unavailable("FailedDiscoveryCheck", fmt.Sprintf("asking the service %s/%s at /apis/%s: %v",
			e.spec.Service.Namespace, e.spec.Service.Name, e.version(), err))
	}
	return passed
}

// write stores the verdict on e where it differs from the stored one.
func (a *Aggregator) write(ctx context.Context, e *extension, v Verdict) error {
	stored, err := a.APIServices.Get(ctx, e.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && stored.UID != e.uid {
		return nil
	}
	if err != nil {
		return err
	}
	status, changed := decideStatus(stored.Status, v, time.Now())
	if !changed {
		return nil
	}
	stored.Status = status
	// Of several apiservers one is first; the others compare again.
	if _, err := a.APIServices.UpdateStatus(ctx, stored, metav1.UpdateOptions{}); !apierrors.IsNotFound(err) {
		return err
	}
	return nil
}
