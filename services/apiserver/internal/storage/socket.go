package storage

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

const (
	// socketName is the unix socket in the data directory that keel store and etcdctl can use.
	socketName = "etcd.sock"
	// maxSocketPath is how long the path of a unix socket can be on Linux.
	maxSocketPath = 107
)

// socketPath is where the socket of the store in dataDir is. A path that is too long for a socket is reached through
// the open directory, which is returned then and must stay open.
func socketPath(dataDir string) (path string, dir *os.File, err error) {
	path, err = filepath.Abs(filepath.Join(dataDir, socketName))
	if err != nil {
		return "", nil, fmt.Errorf("resolving the data directory: %w", err)
	}
	if len(path) > maxSocketPath {
		if dir, err = os.Open(dataDir); err != nil {
			return "", nil, err
		}
		path = fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), socketName)
	}
	return path, dir, nil
}

// Socket is a connection to the store that an apiserver of this machine has open.
type Socket struct {
	*clientv3.Client
	dir *os.File
}

// ErrNotOpen is the error of DialSocket if no process has the store open.
var ErrNotOpen = errors.New("the store is not open")

// DialSocket connects to the store that another process has open in dataDir.
func DialSocket(ctx context.Context, dataDir string, log *zap.Logger) (*Socket, error) {
	path, dir, err := socketPath(dataDir)
	if err != nil {
		return nil, err
	}
	s := &Socket{dir: dir}
	if err := s.connect(ctx, path, log); err != nil {
		s.Close()
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
			return nil, ErrNotOpen
		}
		return nil, fmt.Errorf("connecting to the store in %s: %w", dataDir, err)
	}
	return s, nil
}

func (s *Socket) connect(ctx context.Context, path string, log *zap.Logger) error {
	// The client would wait for a listener.
	probe, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
	if err != nil {
		return err
	}
	_ = probe.Close()
	if s.Client, err = clientv3.New(clientConfig(ctx, log, "unix://"+path)); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	_, err = s.Get(ctx, healthKey)
	return err
}

// Close ends the connection.
func (s *Socket) Close() {
	if s.Client != nil {
		_ = s.Client.Close()
	}
	if s.dir != nil {
		_ = s.dir.Close()
	}
}
