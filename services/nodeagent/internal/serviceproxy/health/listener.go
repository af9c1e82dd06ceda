package health

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

// listenAgain is how long to wait before trying an address in use again: an agent that is ending may still hold it,
// or a Service that gives up a port at the moment at which another Service gets it.
const listenAgain = time.Second

// listener answers load balancers over HTTP.
type listener struct {
	// log names what they ask about.
	log     *zap.Logger
	handler http.Handler
	// wait waits until an address in use is to be tried again; false ends the tries.
	wait func(context.Context) bool
}

func untilNextTry(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(listenAgain):
		return true
	}
}

// open listens on an address, now or as soon as it is free, until ctx ends. It closes the channel when it has
// released the address.
func (l listener) open(ctx context.Context, address string) <-chan struct{} {
	ended := make(chan struct{})
	socket, err := net.Listen("tcp", address)
	if err != nil {
		l.log.Warn("load balancers get no answer at "+address+"; trying again", zap.Error(err))
	}
	go func() {
		defer close(ended)
		for err != nil {
			if !l.wait(ctx) {
				return
			}
			socket, err = net.Listen("tcp", address)
		}
		l.serve(ctx, socket)
	}()
	return ended
}

// maxConnections bounds the load balancers' connections to the answer for one Service; there may be hundreds of
// Services.
const maxConnections = 256

func (l listener) serve(ctx context.Context, socket net.Listener) {
	server := &http.Server{Handler: l.handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute,
		WriteTimeout: 10 * time.Second, ErrorLog: logging.ForHTTP(l.log)}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	bounded := connections.Bound(socket, connections.Limits{Unknown: maxConnections})
	if err := server.Serve(bounded); !errors.Is(err, http.ErrServerClosed) {
		l.log.Warn("answering load balancers ended", zap.Error(err))
	}
}

// writeHead writes the header of an answer, which is JSON.
func writeHead(w http.ResponseWriter, good bool) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if !good {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
}
