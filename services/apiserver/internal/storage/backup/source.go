package backup

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/pflag"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"keelson.dev/services/apiserver/internal/storage"
	"keelson.dev/services/apiserver/internal/storage/storedir"
)

// source is the store that a command reads.
type source struct {
	dataDir string
	cluster storage.Cluster
}

func (s *source) addFlags(fs *pflag.FlagSet) {
	addDataDir(fs, &s.dataDir)
	s.cluster.AddFlags(fs)
}

// open connects to the store. One of this machine whose apiserver does not run is opened as the apiserver does.
func (s *source) open(ctx context.Context) (client *clientv3.Client, closeStore func(), err error) {
	if len(s.cluster.Servers) > 0 {
		return s.dial(ctx)
	}
	socket, err := storage.DialSocket(ctx, s.dataDir, zap.NewNop())
	if err == nil {
		return socket.Client, socket.Close, nil
	}
	if !errors.Is(err, storage.ErrNotOpen) {
		return nil, nil, err
	}
	if paths := storedir.Of(s.dataDir); !exists(paths.Store) { // the apiserver would begin one
		return nil, nil, fmt.Errorf("%s holds no store", s.dataDir)
	}
	embedded, err := storage.StartEmbedded(ctx, s.dataDir, zap.NewNop())
	if err != nil {
		return nil, nil, err
	}
	own := embedded.Client()
	return own.Client, func() { _ = own.Close(); embedded.Close() }, nil
}

// dial connects to the first server of the cluster that answers: a snapshot is one member's. Who answers is in touch
// with the others, and has what they acknowledged.
func (s *source) dial(ctx context.Context) (client *clientv3.Client, closeStore func(), err error) {
	for _, server := range s.cluster.Servers {
		member := s.cluster
		member.Servers = []string{server}
		cluster, failed := member.Dial(ctx, zap.NewNop())
		if failed == nil {
			return cluster.Client, func() { _ = cluster.Close() }, nil
		}
		err = failed
	}
	return nil, nil, err
}

// read reads all of the store.
func (s *source) read(ctx context.Context) (Content, error) {
	client, closeStore, err := s.open(ctx)
	if err != nil {
		return Content{}, err
	}
	defer closeStore()
	return readOpen(ctx, client.KV)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
