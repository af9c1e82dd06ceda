package server

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/spf13/pflag"
	genericapiserver "k8s.io/apiserver/pkg/server"
	genericfilters "k8s.io/apiserver/pkg/server/filters"
	utilflowcontrol "k8s.io/apiserver/pkg/util/flowcontrol"
	flowcontrolrequest "k8s.io/apiserver/pkg/util/flowcontrol/request"
	"k8s.io/client-go/informers"
	clientset "k8s.io/client-go/kubernetes"

	"keelson.dev/services/apiserver/internal/fairshare"
	"keelson.dev/services/apiserver/internal/seats"
)

const (
	// The daemons' clients do not throttle themselves, and writes wait for the disk together: there is room for far
	// more requests than two processors work on.
	maxRequestsInFlight         = 3000
	maxMutatingRequestsInFlight = 1000
	// inFlightRoom is how many times as many all clients together may have in flight: tenants, nodes and daemons have
	// as many each, and who has none has one more.
	inFlightRoom = int(fairshare.Classes) + 1
)

// FlowControl is how many requests there may be at a time, and who decides which.
type FlowControl struct {
	// PriorityAndFairness lets PriorityLevelConfigurations and FlowSchemas decide.
	PriorityAndFairness bool
	// MaxRequestsInFlight and MaxMutatingRequestsInFlight are how many that read and that write.
	MaxRequestsInFlight, MaxMutatingRequestsInFlight int
}

func defaultFlowControl() FlowControl {
	return FlowControl{PriorityAndFairness: true, MaxRequestsInFlight: maxRequestsInFlight,
		MaxMutatingRequestsInFlight: maxMutatingRequestsInFlight}
}

func (f *FlowControl) addFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&f.PriorityAndFairness, "enable-priority-and-fairness", f.PriorityAndFairness,
		"let PriorityLevelConfigurations and FlowSchemas say which requests are worked on first")
	fs.IntVar(&f.MaxRequestsInFlight, "max-requests-inflight", f.MaxRequestsInFlight,
		"with priority and fairness, how many requests are worked on at a time, together with "+
			"--max-mutating-requests-inflight, which priority levels share; without, how many that read tenants, "+
			"nodes and the mesh's own daemons may have in flight each, 0 is no limit")
	fs.IntVar(&f.MaxMutatingRequestsInFlight, "max-mutating-requests-inflight", f.MaxMutatingRequestsInFlight,
		"as --max-requests-inflight, for requests that write")
}

func (f *FlowControl) validate() []error {
	var errs []error
	for flag, value := range map[string]int{"max-requests-inflight": f.MaxRequestsInFlight,
		"max-mutating-requests-inflight": f.MaxMutatingRequestsInFlight} {
		if value < 0 {
			errs = append(errs, fmt.Errorf("--%s: %d is less than 0", flag, value))
		}
	}
	if f.PriorityAndFairness && len(errs) == 0 && f.seats() == 0 {
		errs = append(errs, errors.New("--max-requests-inflight: 0 requests at a time, with "+
			"--max-mutating-requests-inflight, are too few for --enable-priority-and-fairness"))
	}
	return errs
}

// seats are how many requests priority levels share.
func (f *FlowControl) seats() int { return f.MaxRequestsInFlight + f.MaxMutatingRequestsInFlight }

// held is how many requests that read and that write each class of clients may have in flight. With priority and
// fairness those that wait for a seat are among them, however few seats there are.
func (f *FlowControl) held() (reads, writes int) {
	if !f.PriorityAndFairness {
		return f.MaxRequestsInFlight, f.MaxMutatingRequestsInFlight
	}
	return max(f.MaxRequestsInFlight, maxRequestsInFlight),
		max(f.MaxMutatingRequestsInFlight, maxMutatingRequestsInFlight)
}

// of is the library's priority and fairness, or nil.
func (f *FlowControl) of(from informers.SharedInformerFactory, client clientset.Interface) utilflowcontrol.Interface {
	if !f.PriorityAndFairness {
		return nil
	}
	return seats.Yielding{Interface: utilflowcontrol.New(from, client.FlowcontrolV1(), f.seats())}
}

func hasFlowControl(_ *Options, c *genericapiserver.Config) bool { return c.FlowControl != nil }

func noFlowControl(_ *Options, c *genericapiserver.Config) bool { return c.FlowControl == nil }

func withPriorityAndFairness(h http.Handler, _ *Options, c *genericapiserver.Config) http.Handler {
	work := flowcontrolrequest.NewWorkEstimator(c.StorageObjectCountTracker.Get,
		c.FlowControl.GetInterestedWatchCount, flowcontrolrequest.DefaultWorkEstimatorConfig(),
		c.FlowControl.GetMaxSeats)
	// A quarter of the time may pass in a queue.
	return genericfilters.WithPriorityAndFairness(h, c.LongRunningFunc, c.FlowControl, work, c.RequestTimeout/4)
}
