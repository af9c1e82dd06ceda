package server

import (
	"net/http"

	genericapifilters "k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/filters/impersonation"
	genericapiserver "k8s.io/apiserver/pkg/server"
	genericfilters "k8s.io/apiserver/pkg/server/filters"

	"keelson.dev/services/apiserver/internal/requestbody"
)

// chain is the way of each request to its handler. It is the library's chain
// without what nothing here reads: spans and their latency annotations around
// each filter, audit, CORS and HSTS. Every filter costs a goroutine's stack and
// a copy of the request, which for a small object is a good part of the whole.
func chain(handler http.Handler, c *genericapiserver.Config) http.Handler {
	limits := requestbody.Limits{MaxBytes: c.MaxRequestBodyBytes, Streams: c.LongRunningFunc, Serializer: c.Serializer}
	handler = limits.With(handler)
	handler = genericapifilters.WithAuthorization(handler, c.Authorization.Authorizer, c.Serializer)
	handler = genericfilters.WithMaxInFlightLimit(handler, c.MaxRequestsInFlight, c.MaxMutatingRequestsInFlight,
		c.LongRunningFunc)
	handler = impersonation.WithConstrainedImpersonation(handler, c.Authorization.Authorizer, c.Serializer)
	handler = genericapifilters.WithAuthentication(handler, c.Authentication.Authenticator,
		genericapifilters.Unauthorized(c.Serializer), c.Authentication.APIAudiences,
		c.Authentication.RequestHeaderConfig)
	handler = genericapifilters.WithWarningRecorder(handler)
	handler = genericfilters.WithTimeoutForNonLongRunningRequests(handler, c.LongRunningFunc)
	handler = genericapifilters.WithRequestDeadline(handler, nil, nil, c.LongRunningFunc, c.Serializer,
		c.RequestTimeout)
	handler = genericfilters.WithWaitGroup(handler, c.LongRunningFunc, c.NonLongRunningRequestWaitGroup)
	handler = genericfilters.WithWatchTerminationDuringShutdown(handler, shutdown{c}, c.WatchRequestWaitGroup)
	handler = genericapifilters.WithCacheControl(handler)
	handler = genericapifilters.WithRequestInfo(handler, c.RequestInfoResolver)
	handler = genericapifilters.WithRequestReceivedTimestamp(handler)
	handler = genericfilters.WithPanicRecovery(handler, c.RequestInfoResolver)
	return genericapifilters.WithAuditInit(handler)
}

// shutdown tells watches that the server stops.
type shutdown struct{ config *genericapiserver.Config }

// ShuttingDown implements the library's ServerShutdownSignal.
func (s shutdown) ShuttingDown() <-chan struct{} { return s.config.ShutdownInitiatedNotify() }
