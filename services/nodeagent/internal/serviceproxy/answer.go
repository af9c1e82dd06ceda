package serviceproxy

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"go.uber.org/zap"

	"keelson.dev/kit/connections"
	"keelson.dev/kit/logging"
)

// listenAgain is when an address that was taken is tried again: that of an agent which ends, or a port that a Service
// gives up at the moment at which another one gets it.
const listenAgain = time.Second

// answerer answers load balancers that ask by HTTP.
type answerer struct {
	// log says what they ask about.
	log     *zap.Logger
	handler http.Handler
	// wait passes the time until an address that was taken is tried again; false ends that.
	wait func(context.Context) bool
}

func untilNextTry(ctx context.Context) bool { return sleep(ctx, listenAgain) }

// open answers on an address, now or as soon as it is free, until ctx ends. The channel is closed when the address is
// given back.
func (a answerer) open(ctx context.Context, address string) <-chan struct{} {
	ended := make(chan struct{})
	listener, err := net.Listen("tcp", address)
	if err != nil {
		a.log.Warn("load balancers get no answer at "+address+"; trying again", zap.Error(err))
	}
	go func() {
		defer close(ended)
		for err != nil {
			if !a.wait(ctx) {
				return
			}
			listener, err = net.Listen("tcp", address)
		}
		a.serve(ctx, listener)
	}()
	return ended
}

// askers is how many connections load balancers may have to one Service's answer, of which there may be hundreds.
const askers = 256

func (a answerer) serve(ctx context.Context, listener net.Listener) {
	server := &http.Server{Handler: a.handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute,
		WriteTimeout: 10 * time.Second, ErrorLog: logging.ForHTTP(a.log)}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	bounded := connections.Bound(listener, connections.Limits{Unknown: askers})
	if err := server.Serve(bounded); !errors.Is(err, http.ErrServerClosed) {
		a.log.Warn("answering load balancers ended", zap.Error(err))
	}
}

// writeHead begins an answer, which is JSON.
func writeHead(w http.ResponseWriter, good bool) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if !good {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
}
