package storage

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"syscall"

	"go.etcd.io/etcd/client/v3/kubernetes"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"keelson.dev/kit/daemon"
	"keelson.dev/services/apiserver/internal/storage/storedir"
)

// silent is above every level.
const silent = zapcore.FatalLevel + 1

// Embedded is an etcd inside this process: one member, alone or beside those of other machines.
type Embedded struct {
	etcd *member
	lock *os.File
	dir  *os.File
	// failed reports an etcd that ended by itself.
	failed chan error
	// level of etcd's log: warnings from when it is open until it is told to close. What goes wrong
	// before is the error of StartEmbedded, afterwards there is nothing to tell.
	level zap.AtomicLevel
}

// StartEmbedded starts an etcd of this machine alone on dataDir, which it creates if need be. Each
// acknowledged write is on disk. A directory or store that cannot be used, or a
// ctx that ends, is an error of one sentence.
func StartEmbedded(ctx context.Context, dataDir string, log *zap.Logger) (*Embedded, error) {
	return StartMember(ctx, dataDir, Peers{}, log)
}

// StartMember is StartEmbedded for a store that other machines have, too, or may have later. Each acknowledged write is
// on the disks of most of them. It waits until enough of the others are there.
func StartMember(ctx context.Context, dataDir string, peers Peers, log *zap.Logger) (*Embedded, error) {
	if err := prepareDataDir(dataDir, os.Geteuid()); err != nil {
		return nil, err
	}
	lock, err := Lock(dataDir)
	if errors.Is(err, ErrInUse) {
		return nil, daemon.UsageError(fmt.Errorf("--data-dir: %s is in use by another apiserver", dataDir))
	}
	if err != nil {
		return nil, err
	}
	e := &Embedded{lock: lock, level: zap.NewAtomicLevelAt(silent), failed: make(chan error, 1)}
	if err := e.start(ctx, dataDir, peers, log); err != nil {
		e.Close()
		return nil, err
	}
	return e, nil
}

// Client returns a client that calls the store without any connection.
func (e *Embedded) Client() *kubernetes.Client {
	client := &kubernetes.Client{Client: v3client.New(e.etcd.server)}
	client.Kubernetes = client
	return client
}

// Failed reports an etcd that ended by itself.
func (e *Embedded) Failed() <-chan error { return e.failed }

// follow notes beside a store that its member was removed, so that no process opens it again.
func (e *Embedded) follow(paths storedir.Paths) {
	select {
	case err := <-e.etcd.failed:
		e.failed <- mark(paths, e.etcd, err)
	case <-e.etcd.closing:
	}
}

// Close stops the store and gives up the data directory.
func (e *Embedded) Close() {
	e.level.SetLevel(silent)
	if e.etcd != nil {
		e.etcd.close()
	}
	if e.dir != nil {
		_ = e.dir.Close()
	}
	_ = e.lock.Close()
}

// mark notes it beside the store if the error is that its member was taken out.
func mark(paths storedir.Paths, etcd *member, err error) error {
	if !errors.Is(err, errRemoved) || etcd == nil {
		return err
	}
	var others []string
	for _, m := range etcd.server.Cluster().Members() {
		if m.ID != etcd.server.MemberID() {
			others = append(others, m.PeerURLs...)
		}
	}
	return errors.Join(err, storedir.MarkLeft(paths, others))
}

func (e *Embedded) start(ctx context.Context, dataDir string, peers Peers, log *zap.Logger) error {
	socket, dir, err := socketPath(dataDir)
	if err != nil {
		return err
	}
	e.dir = dir
	paths := storedir.Of(dataDir)
	o := newOpening(paths, peers)
	log = log.Named("etcd").WithOptions(append(o.hooks(), zap.IncreaseLevel(e.level))...)
	opening, cancel := context.WithCancel(ctx)
	defer cancel()
	go o.run(opening, memberConfig(paths.Store, url.URL{Scheme: "unix", Path: socket}, log))
	etcd, err := o.wait(ctx)
	if err == nil && peers.on() {
		err = peers.count(ctx, etcd.server)
	}
	if err = mark(paths, etcd, err); err != nil {
		if etcd != nil {
			closeWithin(closeLimit, etcd)
		}
		return err
	}
	e.etcd = etcd
	go e.follow(paths)
	if err := identify(ctx, e.Client().Client, paths); err != nil {
		return err
	}
	e.level.SetLevel(zapcore.WarnLevel)
	showEtcd()
	return nil
}

// prepareDataDir makes the directory, or checks that it is ours alone.
func prepareDataDir(dir string, uid int) error {
	info, err := os.Stat(dir)
	if errors.Is(err, os.ErrNotExist) {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return daemon.UsageError(fmt.Errorf("--data-dir: cannot be made: %w", err))
		}
		return nil
	}
	if err != nil {
		return daemon.UsageError(fmt.Errorf("--data-dir: cannot be read: %w", err))
	}
	if !info.IsDir() {
		return daemon.UsageError(fmt.Errorf("--data-dir: %s is not a directory", dir))
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && int(stat.Uid) != uid {
		return daemon.UsageError(fmt.Errorf(
			"--data-dir: %s belongs to user id %d, but the apiserver runs as user id %d", dir, stat.Uid, uid))
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return daemon.UsageError(fmt.Errorf("--data-dir: cannot be closed to other users: %w", err))
	}
	return nil
}

// ErrInUse is the error of Lock where another process holds the directory.
var ErrInUse = errors.New("it is in use by another process")

// Lock keeps everybody else off the data directory until the file is closed, or this process ends.
func Lock(dir string) (*os.File, error) {
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, daemon.UsageError(fmt.Errorf("--data-dir: cannot be locked: %w", err))
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = lock.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, ErrInUse
		}
		return nil, daemon.UsageError(fmt.Errorf("--data-dir: cannot be locked: %w", err))
	}
	return lock, nil
}
