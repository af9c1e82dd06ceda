// Package seats has requests give up the seats of their priority level while they only wait for who reads their answer.
// The library keeps a seat until the last byte is sent: a few clients that read large lists slowly would keep all
// others of their level waiting.
package seats

import (
	"context"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	utilflowcontrol "k8s.io/apiserver/pkg/util/flowcontrol"
	"k8s.io/apiserver/pkg/util/flowcontrol/fairqueuing"
	flowcontrolrequest "k8s.io/apiserver/pkg/util/flowcontrol/request"

	"keelson.dev/kit/contained"
	"keelson.dev/services/apiserver/internal/largework"
)

// Yielding is priority and fairness under which a large request keeps its seat no longer than others wait for it.
type Yielding struct{ utilflowcontrol.Interface }

// Handle implements utilflowcontrol.Interface. As the library's own it returns when execute has, if that was called.
func (y Yielding) Handle(ctx context.Context, digest utilflowcontrol.RequestDigest,
	note func(*flowcontrolv1.FlowSchema, *flowcontrolv1.PriorityLevelConfiguration, string),
	estimate func() flowcontrolrequest.WorkEstimate, queued fairqueuing.QueueNoteFn, execute func()) {
	passed := largework.Passed(ctx)
	if passed == nil {
		y.Interface.Handle(ctx, digest, note, estimate, queued, execute)
		return
	}
	var (
		seated, executed, left = make(chan struct{}), make(chan struct{}), make(chan struct{})
		broken                 error
	)
	contained.Go("waiting for a seat", func() {
		y.Interface.Handle(ctx, digest, note, estimate, queued, func() {
			close(seated)
			select {
			case <-passed:
			case <-executed:
			}
		})
		close(left)
	}, func(err error) {
		broken = err
		close(left)
	})
	select {
	case <-seated:
		defer func() {
			close(executed)
			<-left
		}()
		execute()
	case <-left:
		if broken != nil {
			panic(broken)
		}
	}
}
