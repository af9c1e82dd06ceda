package storage

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/client/pkg/v3/types"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"
)

const (
	// askLimit bounds one question to a peer.
	askLimit = 10 * time.Second
	// maxMembers is more than what a list of members takes.
	maxMembers = 1 << 20
)

// peerClient asks the members of a cluster at their peer URLs.
type peerClient struct {
	*http.Client
	urls []string
}

// client asks the members that the store joins.
func (p Peers) client() (*peerClient, error) {
	wire, err := transport.NewTransport(p.tls(), askLimit)
	if err != nil {
		return nil, fmt.Errorf("reading --etcd-peer-cert-file, --etcd-peer-key-file or --etcd-peer-ca-file: %w", err)
	}
	return &peerClient{&http.Client{Transport: wire, Timeout: askLimit}, p.Join}, nil
}

// close gives up its connections.
func (c *peerClient) close() { c.CloseIdleConnections() }

// members lists those of the cluster, as the first peer says that answers.
func (c *peerClient) members(ctx context.Context) (members []*membership.Member, err error) {
	return c.ask(ctx, http.MethodGet, membersPath, nil)
}

// add has the cluster have a member of that URL, which does not count yet, and returns all of them.
func (c *peerClient) add(ctx context.Context, url string) ([]*membership.Member, error) {
	return c.ask(ctx, http.MethodPost, entryPath, []byte(url))
}

// remove takes a member out of the cluster.
func (c *peerClient) remove(ctx context.Context, id types.ID) error {
	_, err := c.ask(ctx, http.MethodDelete, entryPath+"/"+id.String(), nil)
	return err
}

// ask asks one peer after the other until one does what it is asked for.
func (c *peerClient) ask(ctx context.Context, method, path string, body []byte) ([]*membership.Member, error) {
	var failed error
	for _, url := range c.urls {
		members, err := c.askOne(ctx, method, url+path, body)
		if err == nil {
			return members, nil
		}
		failed = errors.Join(failed, fmt.Errorf("%s: %w", url, err))
	}
	return nil, failed
}

func (c *peerClient) askOne(ctx context.Context, method, url string, body []byte) ([]*membership.Member, error) {
	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	answer, err := c.Do(request)
	if err != nil {
		return nil, errors.Unwrap(err) // the URL is said once
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxMembers))
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		return nil, errors.New(strings.TrimSpace(string(text)))
	}
	var members []*membership.Member
	if err := json.Unmarshal(text, &members); err != nil {
		return nil, fmt.Errorf("what answers is no member of a store: %w", err)
	}
	return members, nil
}
