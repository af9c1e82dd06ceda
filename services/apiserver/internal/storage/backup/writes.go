package backup

import (
	"context"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"keelson.dev/services/apiserver/internal/storage"
)

// writes are the changes of a cluster from a moment on.
type writes struct {
	changes clientv3.WatchChan
	end     context.CancelFunc
}

// follow begins with what is written after it was called.
func follow(ctx context.Context, client *clientv3.Client) (*writes, error) {
	first, err := client.Get(ctx, storage.MigrationKey)
	if err != nil {
		return nil, fmt.Errorf("reading the store: %w", err)
	}
	watching, end := context.WithCancel(clientv3.WithRequireLeader(ctx))
	return &writes{end: end, changes: client.Watch(watching, "\x00", clientv3.WithFromKey(), clientv3.WithPrevKV(),
		clientv3.WithRev(first.Header.Revision+1))}, nil
}

// none waits until a time is over, in which nothing may be written.
func (w *writes) none(ctx context.Context, over <-chan time.Time) error {
	for {
		select {
		case change, open := <-w.changes:
			if _, err := written(change, open); err != nil {
				return err
			}
		case <-over:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// untilMark waits for the cluster's mark, before which nothing may be written.
func (w *writes) untilMark(ctx context.Context) error {
	for {
		select {
		case change, open := <-w.changes:
			if marked, err := written(change, open); err != nil || marked {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// written reports whether a change is that of the mark. Any other that is not the end of a lease is an error.
func written(change clientv3.WatchResponse, open bool) (marked bool, err error) {
	if err := change.Err(); err != nil {
		return false, fmt.Errorf("following what is written to the cluster: %w", err)
	}
	if !open {
		return false, errors.New("following what is written to the cluster: the cluster has ended that")
	}
	for _, event := range change.Events {
		key := string(event.Kv.Key)
		switch {
		case key == storage.MigrationKey && event.Type == clientv3.EventTypePut:
			return true, nil
		case event.Type == clientv3.EventTypeDelete && (event.PrevKv == nil || event.PrevKv.Lease != 0):
		default:
			return false, fmt.Errorf("the cluster is still written to (%s): end all apiservers that use it, and run "+
				"this again", key)
		}
	}
	return false, nil
}
