package storage

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/client/pkg/v3/types"
	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.etcd.io/etcd/server/v3/etcdserver/api/etcdhttp"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"
	"go.etcd.io/etcd/server/v3/etcdserver/api/rafthttp"
	"go.uber.org/zap"

	"keelson.dev/kit/connections"
)

const (
	// membersPath is etcd's, at which a peer lists the members; entryPath is ours, at which one is added or removed.
	membersPath = "/members"
	entryPath   = "/keelson/members"
	// maxURL is longer than the URL of any peer.
	maxURL = 1 << 10
	// peerHeaders bounds how long a peer may take to ask.
	peerHeaders = 10 * time.Second
)

// listen takes the member's address for peers.
func (p Peers) listen() (net.Listener, error) {
	// A peer that is gone keeps no stream of the log waiting.
	plain, err := transport.NewListenerWithOpts(p.Address, "http",
		transport.WithTimeout(rafthttp.ConnReadTimeout, rafthttp.ConnWriteTimeout))
	if err != nil {
		return nil, fmt.Errorf("--etcd-peer-address: %w", err)
	}
	info := p.tls()
	listener, err := transport.NewTLSListener(connections.Bound(plain, connections.OfProcess()), &info)
	if err != nil {
		_ = plain.Close()
		return nil, fmt.Errorf("reading --etcd-peer-cert-file, --etcd-peer-key-file or --etcd-peer-ca-file: %w", err)
	}
	return listener, nil
}

// newPeerServer answers the other members of a store, and machines that are to have one.
func newPeerServer(server *etcdserver.EtcdServer, lg *zap.Logger) *http.Server {
	mux := http.NewServeMux()
	mux.Handle("/", etcdhttp.NewPeerHandler(lg, server))
	entries := &entries{server}
	mux.HandleFunc("POST "+entryPath, entries.add)
	mux.HandleFunc("DELETE "+entryPath+"/{id}", entries.remove)
	return &http.Server{Handler: mux, ReadHeaderTimeout: peerHeaders, ErrorLog: log.New(io.Discard, "", 0)}
}

// entries adds members to a store's cluster and removes them, as who has a certificate of its authority asks. Etcd
// itself refuses what would cost the cluster its majority.
type entries struct{ server *etcdserver.EtcdServer }

// add makes a member that gets all that is written, and does not count until it has caught up.
func (e *entries) add(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(io.LimitReader(r.Body, maxURL))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	urls, err := types.NewURLs([]string{strings.TrimSpace(string(text))})
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	now := time.Now()
	e.change(w, r, func(ctx context.Context) ([]*membership.Member, error) {
		return e.server.AddMember(ctx, *membership.NewMemberAsLearner("", urls, "", &now))
	})
}

// remove takes a member away.
func (e *entries) remove(w http.ResponseWriter, r *http.Request) {
	id, err := types.IDFromString(r.PathValue("id"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	e.change(w, r, func(ctx context.Context) ([]*membership.Member, error) {
		return e.server.RemoveMember(ctx, uint64(id))
	})
}

func (e *entries) change(w http.ResponseWriter, r *http.Request,
	do func(context.Context) ([]*membership.Member, error)) {
	ctx, cancel := context.WithTimeout(r.Context(), askLimit)
	defer cancel()
	members, err := do(ctx)
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(members)
}
