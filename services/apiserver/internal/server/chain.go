package server

import (
	"net/http"
	"slices"

	"k8s.io/apiserver/pkg/authentication/user"
	genericapifilters "k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/filters/impersonation"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	genericapiserver "k8s.io/apiserver/pkg/server"
	genericfilters "k8s.io/apiserver/pkg/server/filters"

	"keelson.dev/services/apiserver/internal/authz/answerform"
	"keelson.dev/services/apiserver/internal/carriedfields"
	"keelson.dev/services/apiserver/internal/fairshare"
	"keelson.dev/services/apiserver/internal/inflight"
	"keelson.dev/services/apiserver/internal/largework"
	"keelson.dev/services/apiserver/internal/longrunning"
	"keelson.dev/services/apiserver/internal/recentwrites"
	"keelson.dev/services/apiserver/internal/requestbatch"
	"keelson.dev/services/apiserver/internal/requestbody"
	"keelson.dev/services/apiserver/internal/stack"
	"keelson.dev/services/apiserver/internal/storage"
	"keelson.dev/services/apiserver/internal/watchstream"
)

// filter is a step on the way of each request to its handler.
type filter struct {
	name string
	// after are the filters that must have seen the request before.
	after []string
	// on reports whether the filter is in the chain; nil: always. flag is what switches it, if anything can.
	on   func(*Options, *genericapiserver.Config) bool
	flag string
	wrap func(http.Handler, *Options, *genericapiserver.Config) http.Handler
	// each says of a filter before that at which batches are opened that it is for each of their requests too. What
	// comes behind is for these alone.
	each bool
}

// opens is the filter behind which batches of requests are opened: who sends a batch is known, what it may is not asked
// yet.
const opens = "authentication"

// filters are all filters in the order in which a request meets them. Above each stands its cost for a request, as
// BenchmarkFilters measured it; the whole takes 17 µs and 87 allocations, a good part of a small object's request. So
// the chain has only what operators read: of the library's chain, it leaves out the latency annotations around each
// filter, CORS, HSTS and logging.
var filters = []filter{
	// 1.6 µs, 12 allocations.
	{name: "audit-init", each: true, wrap: func(h http.Handler, _ *Options, _ *genericapiserver.Config) http.Handler {
		return genericapifilters.WithAuditInit(h)
	}},
	// 0.2 µs, 1 allocation.
	{name: "panic-recovery", wrap: func(h http.Handler, _ *Options, c *genericapiserver.Config) http.Handler {
		return genericfilters.WithPanicRecovery(h, c.RequestInfoResolver)
	}},
	// 0.2 µs, 2 allocations.
	{
		name: "received-timestamp",
		each: true,
		wrap: func(h http.Handler, _ *Options, _ *genericapiserver.Config) http.Handler {
			return genericapifilters.WithRequestReceivedTimestamp(h)
		},
	},
	// 0.3 µs.
	{name: "request-info", each: true, wrap: func(h http.Handler, _ *Options, c *genericapiserver.Config) http.Handler {
		return genericapifilters.WithRequestInfo(h, c.RequestInfoResolver)
	}},
	// 0.1 µs, for what is no watch.
	{name: "joined-flushes", after: []string{"request-info"},
		wrap: func(h http.Handler, _ *Options, _ *genericapiserver.Config) http.Handler {
			return watchstream.WithJoinedFlushes(h)
		}},
	// 0.3 µs, 1 allocation.
	{name: "cache-control", wrap: func(h http.Handler, _ *Options, _ *genericapiserver.Config) http.Handler {
		return genericapifilters.WithCacheControl(h)
	}},
	// 0.1 µs.
	{name: "goaway", on: func(o *Options, _ *genericapiserver.Config) bool { return o.GoawayChance > 0 },
		flag: "goaway-chance",
		wrap: func(h http.Handler, _ *Options, c *genericapiserver.Config) http.Handler {
			return genericfilters.WithProbabilisticGoaway(h, c.GoawayChance)
		}},
	// 0.2 µs.
	{name: "watch-termination", after: []string{"request-info"},
		wrap: func(h http.Handler, _ *Options, c *genericapiserver.Config) http.Handler {
			return genericfilters.WithWatchTerminationDuringShutdown(h, shutdown{c}, c.WatchRequestWaitGroup)
		}},
	// 0.2 µs.
	{name: "wait-group", after: []string{"request-info"},
		wrap: func(h http.Handler, _ *Options, c *genericapiserver.Config) http.Handler {
			return genericfilters.WithWaitGroup(h, c.LongRunningFunc, c.NonLongRunningRequestWaitGroup)
		}},
	// 1.3 µs, 7 allocations.
	{name: "deadline", each: true, after: []string{"audit-init", "received-timestamp", "request-info"},
		wrap: func(h http.Handler, _ *Options, c *genericapiserver.Config) http.Handler {
			return genericapifilters.WithRequestDeadline(h, c.AuditBackend, c.AuditPolicyRuleEvaluator,
				c.LongRunningFunc, c.Serializer, c.RequestTimeout)
		}},
	// 8.4 µs, 17 allocations: a goroutine of its own, whose stack grows again.
	{
		name:  "timeout",
		after: []string{"deadline"},
		wrap: func(h http.Handler, _ *Options, c *genericapiserver.Config) http.Handler {
			return genericfilters.WithTimeoutForNonLongRunningRequests(h, c.LongRunningFunc)
		},
	},
	// For the goroutine that the timeout started. It takes 7 % from the cost of a Pod's create, 17 % from an update's.
	{name: "stack", after: []string{"request-info", "timeout"}, wrap: withStack},
	// 0.6 µs, 3 allocations.
	{name: "warnings", each: true, after: []string{"timeout"},
		wrap: func(h http.Handler, _ *Options, _ *genericapiserver.Config) http.Handler {
			return genericapifilters.WithWarningRecorder(h)
		}},
	// 2.2 µs, 18 allocations, by a token file.
	{name: "authentication", after: []string{"audit-init"}, wrap: withAuthentication},
	// 0.6 µs, 1 allocation.
	{name: "known-connection", after: []string{"authentication"},
		on:   func(o *Options, _ *genericapiserver.Config) bool { return o.accepted != nil },
		wrap: withKnownConnection},
	// Behind authentication, so that the user decides whether the trace of the client is carried on.
	// 10 µs, 44 allocations where no request is sampled.
	{name: "tracing", after: []string{"received-timestamp", "request-info", "authentication"},
		on:   func(o *Options, _ *genericapiserver.Config) bool { return o.Tracing.ConfigFile != "" },
		flag: "tracing-config-file",
		wrap: func(h http.Handler, _ *Options, c *genericapiserver.Config) http.Handler {
			return genericapifilters.WithTracing(h, c.TracerProvider)
		}},
	// 9 µs, 33 allocations, at level Metadata.
	{name: "audit", after: []string{"audit-init", "received-timestamp", "request-info", "authentication"},
		on:   func(o *Options, _ *genericapiserver.Config) bool { return o.Audit.PolicyFile != "" },
		flag: "audit-policy-file",
		wrap: func(h http.Handler, _ *Options, c *genericapiserver.Config) http.Handler {
			return genericapifilters.WithAudit(h, c.AuditBackend, c.AuditPolicyRuleEvaluator, c.LongRunningFunc)
		}},
	// 0.3 µs, 1 allocation.
	{name: "impersonation", after: []string{"authentication"},
		wrap: func(h http.Handler, _ *Options, c *genericapiserver.Config) http.Handler {
			return impersonation.WithConstrainedImpersonation(h, c.Authorization.Authorizer, c.Serializer)
		}},
	// 0.3 µs, for who is counted.
	{name: "client-share", after: []string{"request-info", "impersonation"},
		wrap: func(h http.Handler, _ *Options, c *genericapiserver.Config) http.Handler {
			limit := inflight.Limit{ReadOnly: c.MaxRequestsInFlight / inFlightRoom,
				Mutating:    c.MaxMutatingRequestsInFlight / inFlightRoom,
				LongRunning: c.LongRunningFunc, Serializer: c.Serializer}
			if hasFlowControl(nil, c) {
				limit.Together = inFlightRoom
			}
			return limit.With(h)
		}},
	// 0.4 µs.
	{name: "in-flight-limit", after: []string{"request-info", "impersonation"},
		on: noFlowControl,
		wrap: func(h http.Handler, _ *Options, c *genericapiserver.Config) http.Handler {
			return genericfilters.WithMaxInFlightLimit(h, c.MaxRequestsInFlight, c.MaxMutatingRequestsInFlight,
				c.LongRunningFunc)
		}},
	// Next to nothing, for what does not ask for the metadata of objects.
	{
		name:  "answer-form",
		after: []string{"request-info"},
		wrap: func(h http.Handler, _ *Options, _ *genericapiserver.Config) http.Handler {
			return answerform.With(h)
		},
	},
	// 2.4 µs, 17 allocations, by one role.
	{name: "authorization", after: []string{"request-info", "impersonation", "answer-form"},
		wrap: func(h http.Handler, _ *Options, c *genericapiserver.Config) http.Handler {
			return genericapifilters.WithAuthorization(h, c.Authorization.Authorizer, c.Serializer)
		}},
	// For what is no watch, as joined-flushes.
	{name: "long-running-limit", after: []string{"request-info", "authorization"},
		on:   func(o *Options, _ *genericapiserver.Config) bool { return o.MaxLongRunningPerClient > 0 },
		flag: "max-long-running-requests-per-client",
		wrap: func(h http.Handler, o *Options, c *genericapiserver.Config) http.Handler {
			return longrunning.Limit{PerClient: o.MaxLongRunningPerClient, Is: c.LongRunningFunc,
				Serializer: c.Serializer}.With(h)
		}},
	// 0.4 µs.
	{name: "recent-writes", after: []string{"request-info", "authorization"},
		wrap: func(h http.Handler, o *Options, c *genericapiserver.Config) http.Handler {
			return recentwrites.Limit{MaxBodyBytes: c.MaxRequestBodyBytes, Sizes: o.sizes, Cached: storage.Cached,
				Serializer: c.Serializer}.With(h)
		}},
	// 1 µs, 2 allocations.
	{name: "large-work", after: []string{"request-info", "authorization"},
		wrap: func(h http.Handler, o *Options, c *genericapiserver.Config) http.Handler {
			return largework.Limit{MaxBodyBytes: c.MaxRequestBodyBytes, Sizes: o.sizes, LongRunning: c.LongRunningFunc,
				Serializer: c.Serializer}.With(h)
		}},
	// 0.1 µs, for a request without body.
	{name: "request-body", after: []string{"request-info", "authorization"},
		wrap: func(h http.Handler, _ *Options, c *genericapiserver.Config) http.Handler {
			return requestbody.Limits{MaxBytes: c.MaxRequestBodyBytes, Streams: c.LongRunningFunc,
				Serializer: c.Serializer}.With(h)
		}},
	// Behind all that a request waits for which is no work, unlike in the library's chain: who sends his body or reads
	// an answer slowly keeps no seat from others (docs/decisions/0022). 6.7 µs, 57 allocations more than the limit in
	// its place.
	{name: "priority-and-fairness", after: []string{"request-info", "deadline", "impersonation", "authorization",
		"large-work", "request-body"},
		on: hasFlowControl, flag: "enable-priority-and-fairness", wrap: withPriorityAndFairness},
	// 3 allocations, for a create, where it saves 147.
	{name: "carried-fields", wrap: func(h http.Handler, _ *Options, _ *genericapiserver.Config) http.Handler {
		return carriedfields.ForCreates(h)
	}},
}

// chain is the way of each request to handler.
func (o *Options) chain(handler http.Handler, c *genericapiserver.Config) http.Handler {
	in := o.filters(c)
	at := 1 + slices.IndexFunc(in, func(f filter) bool { return f.name == opens })
	handler = o.wrap(handler, in[at:], c)
	each := slices.DeleteFunc(slices.Clone(in[:at]), func(f filter) bool { return !f.each })
	handler = requestbatch.Over(handler, o.wrap(handler, each, c), requestbatch.Config{
		Serializer: c.Serializer, Resolver: c.RequestInfoResolver, LongRunning: c.LongRunningFunc,
		Limits: o.Batches})
	return o.wrap(handler, in[:at], c)
}

// filters are those that the options switch on.
func (o *Options) filters(c *genericapiserver.Config) []filter {
	return slices.DeleteFunc(slices.Clone(filters), func(f filter) bool { return f.on != nil && !f.on(o, c) })
}

func (o *Options) wrap(handler http.Handler, in []filter, c *genericapiserver.Config) http.Handler {
	for _, f := range slices.Backward(in) {
		handler = f.wrap(handler, o, c)
	}
	return handler
}

// withStack gives the goroutine of a request the stack that it will need. A watch needs less, and keeps what it has.
func withStack(h http.Handler, _ *Options, c *genericapiserver.Config) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if info, ok := genericapirequest.RequestInfoFrom(r.Context()); ok && !c.LongRunningFunc(r, info) {
			stack.Grow()
		}
		h.ServeHTTP(w, r)
	})
}

func withAuthentication(h http.Handler, _ *Options, c *genericapiserver.Config) http.Handler {
	failed := genericapifilters.WithFailedAuthenticationAudit(genericapifilters.Unauthorized(c.Serializer),
		c.AuditBackend, c.AuditPolicyRuleEvaluator)
	return genericapifilters.WithAuthentication(h, c.Authentication.Authenticator, failed,
		c.Authentication.APIAudiences, c.Authentication.RequestHeaderConfig)
}

// withKnownConnection tells the listener whose connection a request came on: that of the first user who is
// authenticated on it.
func withKnownConnection(h http.Handler, o *Options, _ *genericapiserver.Config) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if by, found := genericapirequest.UserFrom(r.Context()); found && by.GetName() != user.Anonymous {
			o.accepted.Known(r, fairshare.Client(by.GetName()))
		}
		h.ServeHTTP(w, r)
	})
}

// shutdown tells watches that the server stops.
type shutdown struct{ config *genericapiserver.Config }

// ShuttingDown implements the library's ServerShutdownSignal.
func (s shutdown) ShuttingDown() <-chan struct{} { return s.config.ShutdownInitiatedNotify() }
