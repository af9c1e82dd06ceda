package storage

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	clientv3 "go.etcd.io/etcd/client/v3"

	"keelson.dev/services/apiserver/internal/storage/storedir"
)

const (
	// IdentityKey holds which mesh the store keeps. It is no API object.
	IdentityKey = "/keelson/identity"
	// identifyLimit bounds the reads and the write of a store that has just been opened.
	identifyLimit = 30 * time.Second
)

// identify makes sure that the store is the one that the record beside it means, and that both hold their identity
// before anything is acknowledged.
func identify(ctx context.Context, client *clientv3.Client, paths storedir.Paths) error {
	ctx, cancel := context.WithTimeout(ctx, identifyLimit)
	defer cancel()
	recorded, err := storedir.ReadIdentity(paths)
	if err != nil {
		return err
	}
	stored, err := readStored(ctx, client)
	if err != nil {
		return fmt.Errorf("reading the store's identity: %w", err)
	}
	identity, err := storedir.Identify(paths, recorded, stored, uuid.NewString())
	if err != nil {
		return err
	}
	if stored.Identity != identity {
		if _, err := client.Put(ctx, IdentityKey, identity); err != nil {
			return fmt.Errorf("writing the store's identity: %w", err)
		}
	}
	if recorded != identity {
		return storedir.WriteIdentity(paths, identity)
	}
	return nil
}

func readStored(ctx context.Context, client *clientv3.Client) (storedir.Stored, error) {
	own, err := client.Get(ctx, IdentityKey)
	if err != nil {
		return storedir.Stored{}, err
	}
	if len(own.Kvs) > 0 {
		return storedir.Stored{Identity: string(own.Kvs[0].Value)}, nil
	}
	first, err := client.Get(ctx, "\x00", clientv3.WithFromKey(), clientv3.WithLimit(1), clientv3.WithKeysOnly())
	if err != nil {
		return storedir.Stored{}, err
	}
	return storedir.Stored{Empty: len(first.Kvs) == 0}, nil
}
