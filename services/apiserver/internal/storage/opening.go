package storage

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/server/v3/config"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"keelson.dev/kit/failpoint"
	"keelson.dev/services/apiserver/internal/storage/storedir"
)

const (
	// replayLimit bounds how long an opened store takes to apply the end of its log, some ten thousand entries.
	replayLimit = time.Minute
	// closeLimit bounds the close of a store that did not open: the library may wait for what never comes.
	closeLimit = 5 * time.Second
)

// opening runs the library's start of a store in a goroutine of its own. Whatever the library does there in place of
// returning an error (a panic, an exit of the process, no end at all) becomes the error of wait.
type opening struct {
	paths storedir.Paths
	peers Peers
	// opened says that the start has ended: from then on a failure ends the process, as the library means it.
	opened atomic.Bool
	failed chan error
	etcd   chan *member
}

func newOpening(paths storedir.Paths, peers Peers) *opening {
	return &opening{paths: paths, peers: peers, failed: make(chan error, 1), etcd: make(chan *member, 1)}
}

// hooks take the place of the exits and panics in the library's log.
func (o *opening) hooks() []zap.Option {
	return []zap.Option{
		zap.WithFatalHook(hook{o, zapcore.WriteThenFatal}),
		zap.WithPanicHook(hook{o, zapcore.WriteThenPanic}),
	}
}

type hook struct {
	*opening
	otherwise zapcore.CheckWriteHook
}

// OnWrite implements zapcore.CheckWriteHook.
func (h hook) OnWrite(entry *zapcore.CheckedEntry, fields []zapcore.Field) {
	if h.opened.Load() {
		h.otherwise.OnWrite(entry, fields)
		return
	}
	h.fail(h.broken(storedir.Describe(entry.Message, fields)))
	runtime.Goexit()
}

// fail keeps the first failure: later ones follow from it.
func (o *opening) fail(err error) {
	select {
	case o.failed <- err:
	default:
	}
}

// broken is the sentence about a store whose files look whole and that the library cannot open.
func (o *opening) broken(what string) error {
	return o.paths.Damage(o.paths.Store, "cannot be opened (%s)", storedir.OneLine(what))
}

// run checks and opens the store. Wait tells how it went.
func (o *opening) run(ctx context.Context, c config.ServerConfig) {
	debug.SetPanicOnFault(true)
	defer func() {
		if failure := recover(); failure != nil {
			o.fail(o.broken(fmt.Sprint(failure)))
		}
	}()
	if err := failpoint.Inject("apiserver/store.open.before"); err != nil {
		o.fail(err)
		return
	}
	found, err := storedir.Check(o.paths)
	if err == nil {
		err = found.MayOpen(o.peers.on())
	}
	if err != nil {
		o.fail(err)
		return
	}
	start := func() (*member, error) { return o.startLone(c) }
	if o.peers.on() {
		o.peers.apply(&c)
	}
	if len(o.peers.Join) > 0 && found.Log == nil {
		start = func() (*member, error) { return o.startEntering(ctx, c) }
	}
	etcd, err := start()
	if err != nil {
		o.fail(err)
		return
	}
	o.etcd <- etcd
}

// startLone opens a store that needs no other member to start.
func (o *opening) startLone(c config.ServerConfig) (*member, error) {
	var peers net.Listener
	if o.peers.on() {
		var err error
		if peers, err = o.peers.listen(); err != nil {
			return nil, err
		}
	}
	socket, err := listen(c.ClientURLs[0].Path)
	if err != nil {
		if peers != nil {
			_ = peers.Close()
		}
		return nil, err
	}
	etcd, err := startMember(c, socket, peers)
	if err != nil {
		return nil, o.broken(err.Error())
	}
	return etcd, nil
}

// wait returns the store once it has applied its log. The error is that of ctx, or one sentence about the store. A
// store may be returned beside the error; it is to be closed.
func (o *opening) wait(ctx context.Context) (*member, error) {
	var etcd *member
	select {
	case etcd = <-o.etcd:
	case err := <-o.failed:
		return nil, err
	case <-ctx.Done():
		return nil, o.stopped(ctx)
	}
	var over <-chan time.Time
	if !o.peers.on() { // which may all have to come first
		limit := time.NewTimer(replayLimit)
		defer limit.Stop()
		over = limit.C
	}
	select {
	case <-etcd.server.ReadyNotify():
		o.opened.Store(true)
		return etcd, nil
	case err := <-o.failed:
		return etcd, err
	case err := <-etcd.failed:
		if errors.Is(err, errRemoved) {
			return etcd, err
		}
		return etcd, o.broken(err.Error())
	case <-over:
		return etcd, o.broken("it did not become ready within " + replayLimit.String())
	case <-ctx.Done():
		return etcd, o.stopped(ctx)
	}
}

func (o *opening) stopped(ctx context.Context) error {
	return fmt.Errorf("stopped while opening the store in %s: %w", o.paths.Store, context.Cause(ctx))
}

// closeWithin closes a store, but does not wait for one that cannot be closed.
func closeWithin(limit time.Duration, etcd *member) {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		etcd.close()
	}()
	select {
	case <-closed:
	case <-time.After(limit):
	}
}
