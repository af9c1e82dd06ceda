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

// listenAgain is when an address that was taken is tried again: that of an agent which ends, or a port that a Service
// gives up at the moment at which another one gets it.
const listenAgain = time.Second

// listener answers load balancers that ask by HTTP.
type listener struct {
	// log says what they ask about.
	log     *zap.Logger
	handler http.Handler
	// wait passes the time until an address that was taken is tried again; false ends that.
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

// open answers on an address, now or as soon as it is free, until ctx ends. The channel is closed when the address is
// given back.
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

// maxConnections is how many load balancers may have to one Service's answer, of which there may be hundreds.
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

// writeHead begins an answer, which is JSON.
func writeHead(w http.ResponseWriter, good bool) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if !good {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
}
