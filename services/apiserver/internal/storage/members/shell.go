package members

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.uber.org/zap"

	"keelson.dev/services/apiserver/internal/storage"
	"keelson.dev/services/apiserver/internal/storage/storedir"
)

const (
	// healthWait is longer than members must have been in touch before one of them may go.
	healthWait = 8 * time.Second
	// healthInterval is how often that is tried.
	healthInterval = time.Second
)

// errNotOpen is why nothing is known of the others.
var errNotOpen = errors.New("the apiserver of this machine does not have the store open: start it, or ask on another " +
	"machine that has one")

// connect reaches the store that the apiserver of this machine has open.
func connect(ctx context.Context, dataDir string) (*storage.Socket, error) {
	socket, err := storage.DialSocket(ctx, dataDir, zap.NewNop())
	if errors.Is(err, storage.ErrNotOpen) {
		return nil, errNotOpen
	}
	return socket, err
}

// list asks the store for its members.
func list(ctx context.Context, socket *storage.Socket) ([]Member, error) {
	found, err := socket.MemberList(ctx)
	if err != nil {
		return nil, fmt.Errorf("asking for the store's members: %w", err)
	}
	var all []Member
	for _, m := range found.Members {
		url := ""
		if len(m.PeerURLs) > 0 {
			url = m.PeerURLs[0]
		}
		_, address, _ := strings.Cut(url, "://")
		all = append(all, Member{ID: m.ID, Address: address, URL: url, Counts: !m.IsLearner,
			Self: m.ID == found.Header.MemberId})
	}
	return all, nil
}

// remove takes a member out. One that has just come has to be in touch with the others for some seconds first.
func remove(ctx context.Context, socket *storage.Socket, id uint64) error {
	patience, cancel := context.WithTimeout(ctx, healthWait)
	defer cancel()
	for {
		_, err := socket.MemberRemove(ctx, id)
		if !errors.Is(err, rpctypes.ErrUnhealthy) {
			return refusal(err)
		}
		select {
		case <-patience.Done():
			return refusal(err)
		case <-time.After(healthInterval):
		}
	}
}

// refusal says what keeps a member.
func refusal(err error) error {
	switch {
	case err == nil, errors.Is(err, rpctypes.ErrMemberNotFound): // it is gone, as is wanted
		return nil
	case errors.Is(err, rpctypes.ErrUnhealthy), errors.Is(err, rpctypes.ErrMemberNotEnoughStarted):
		return errors.New("without this member those that are left would be no majority, and nobody could write: " +
			"bring the members back that do not answer, or take out first, by keel store remove-member, those that " +
			"will not come back")
	}
	return fmt.Errorf("taking the member out: %w", err)
}

// departure is what became of a leave.
type departure struct {
	// Alone tells that no other machine has the store, so that it stays.
	Alone bool `json:"alone,omitempty"`
	// Peers are the URLs of those that go on.
	Peers []string `json:"peers,omitempty"`
}

// leave takes this machine's member out, if there are others. It does nothing where an earlier one has.
func leave(ctx context.Context, dataDir string) (departure, error) {
	paths := storedir.Of(dataDir)
	if left, others, err := storedir.HasLeft(paths); err != nil || left {
		return departure{Peers: others}, err
	}
	socket, err := connect(ctx, dataDir)
	if errors.Is(err, errNotOpen) {
		return closed(dataDir, paths)
	}
	if err != nil {
		return departure{}, fmt.Errorf("the other machines that have the store do not answer: %w", err)
	}
	defer socket.Close()
	all, err := list(ctx, socket)
	if err != nil {
		return departure{}, err
	}
	own, err := decideLeave(all)
	if err != nil || own == nil {
		return departure{Alone: own == nil}, err
	}
	if err := remove(ctx, socket, own.ID); err != nil {
		return departure{}, err
	}
	return departure{Peers: others(all)}, storedir.MarkLeft(paths, others(all))
}

// closed judges a store that no process has open. A damaged one is not a member that leaves others.
func closed(dataDir string, paths storedir.Paths) (departure, error) {
	lock, err := storage.Lock(dataDir)
	if errors.Is(err, storage.ErrInUse) {
		return departure{}, errors.New("the apiserver is still opening the store, for which other machines have to " +
			"answer that have it, too: wait for it")
	}
	if err != nil {
		return departure{Alone: true}, nil //nolint:nilerr // there is no store
	}
	defer func() { _ = lock.Close() }()
	found, err := storedir.Check(paths)
	if err != nil || found.Database == nil || found.Database.Members < 2 {
		return departure{Alone: true}, nil //nolint:nilerr // as said
	}
	return departure{}, fmt.Errorf("this machine is one of %d that have the store, and its apiserver does not run: "+
		"start it first", found.Database.Members)
}
