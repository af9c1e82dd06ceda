package storage

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/types"
	"go.etcd.io/etcd/server/v3/config"
	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"
	"go.uber.org/zap"

	"keelson.dev/kit/failpoint"
)

// entryInterval is how soon a member tries again to become part of a cluster that does not take it, or does not answer.
const entryInterval = time.Second

// entering makes an empty store part of the cluster of others. Each step begins with what the cluster says of itself,
// so that a start that was cut off anywhere is finished by the next one.
type entering struct {
	peers  Peers
	client *peerClient
	log    *zap.Logger
	// added is the member that this start has added; 0 before.
	added types.ID
}

// startEntering begins the member of an empty store, again and again until it is part of the cluster or ctx ends.
func (o *opening) startEntering(ctx context.Context, c config.ServerConfig) (*member, error) {
	client, err := o.peers.client()
	if err != nil {
		return nil, err
	}
	defer client.close()
	e := &entering{peers: o.peers, client: client, log: c.Logger}
	c.NewCluster = false
	for {
		started, err := e.try(ctx, c, o.startLone)
		if err == nil {
			return started, nil
		}
		e.peers.doing("asking to be part of the store of " + strings.Join(e.peers.Join, ", ") + ": " + err.Error())
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(entryInterval):
		}
	}
}

// try takes the steps that are left.
func (e *entering) try(ctx context.Context, c config.ServerConfig,
	start func(config.ServerConfig) (*member, error)) (*member, error) {
	own := e.peers.url()
	members, err := e.client.members(ctx)
	if err != nil {
		return nil, err
	}
	step := decideEntry(members, own.String(), c.Name, e.added)
	if step.remove != 0 {
		if err := e.client.remove(ctx, step.remove); err != nil {
			return nil, fmt.Errorf("taking the member out that was at %s before: %w", own.String(), err)
		}
		step = entry{add: true}
	}
	if step.add {
		if err := e.add(ctx); err != nil {
			return nil, err
		}
		if members, err = e.client.members(ctx); err != nil {
			return nil, err
		}
		step = decideEntry(members, own.String(), c.Name, e.added)
	}
	if len(step.cluster) == 0 {
		return nil, fmt.Errorf("the store's members do not all know of %s yet", own.String())
	}
	c.InitialPeerURLsMap = step.cluster
	return start(c)
}

// add has the cluster have this machine's member.
func (e *entering) add(ctx context.Context) error {
	at := e.peers.url()
	own := at.String()
	var members []*membership.Member
	if err := failpoint.Around("apiserver/store.enter", func() (err error) {
		members, err = e.client.add(ctx, own)
		return err
	}); err != nil {
		return err
	}
	i := slices.IndexFunc(members, func(m *membership.Member) bool { return slices.Contains(m.PeerURLs, own) })
	if i < 0 {
		return fmt.Errorf("the store's members do not know of %s", own)
	}
	e.added = members[i].ID
	return nil
}

// count has a member that has caught up count, and the others know it by the address that it has now. It returns once
// both is so, or ctx ends.
func (p Peers) count(ctx context.Context, server *etcdserver.EtcdServer) error {
	for {
		err := p.countOnce(ctx, server)
		if err == nil {
			return nil
		}
		p.doing("catching up with the store's other members: " + err.Error())
		select {
		case <-ctx.Done():
			return fmt.Errorf("catching up with the store's other members: %w", err)
		case <-server.StopNotify():
			return endOf(server)
		case <-time.After(entryInterval):
		}
	}
}

func (p Peers) countOnce(ctx context.Context, server *etcdserver.EtcdServer) error {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	own := server.Cluster().Member(server.MemberID())
	switch url := p.url(); {
	case own == nil:
		return errRemoved
	case own.IsLearner:
		return failpoint.Around("apiserver/store.count", func() error {
			_, err := server.PromoteMember(ctx, uint64(own.ID))
			return err
		})
	case !slices.Equal(own.PeerURLs, []string{url.String()}):
		_, err := server.UpdateMember(ctx, membership.Member{ID: own.ID,
			RaftAttributes: membership.RaftAttributes{PeerURLs: []string{url.String()}}})
		return err
	}
	return nil
}
