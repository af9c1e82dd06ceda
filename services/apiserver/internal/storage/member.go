package storage

import (
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"sync"
	"time"

	"github.com/google/uuid"
	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/client/pkg/v3/types"
	"go.etcd.io/etcd/server/v3/config"
	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3rpc"
	"go.etcd.io/etcd/server/v3/features"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
)

const (
	// memberName and clusterToken make the ids of a new store. They stay as they are: etcdctl shows them.
	memberName   = "keelson"
	clusterToken = "etcd-cluster"
	// memberPeer is where a lone member would be reached by others: it needs no listener, its URL is only a name.
	memberPeer = "localhost:2380"
	// quotaBytes is where the store refuses further writes, 8 GiB as etcd recommends at most.
	quotaBytes = 8 << 30
	// requestBytes and requestOperations bound one request, as etcd does by default.
	requestBytes, requestOperations = 3 << 19, 128
	// snapshotEntries of the log are written between two snapshots of what is not in the database.
	snapshotEntries = 10_000
	// catchUpEntries of the log stay in memory for members that lag behind, of which a lone one has none.
	catchUpEntries = 100
	// keptFiles of the log, and of its snapshots, are not removed although a later snapshot holds what they say.
	keptFiles = 5
	// One member elects itself within an election timeout, so a short one makes a
	// restart quick. Each tick wakes an idle process: 50 ms cost half a percent of a core.
	tickMilliseconds = 50
	electionTicks    = 5
	// slowApply and slowRequest are what etcd warns of.
	slowApply, slowRequest = 100 * time.Millisecond, 300 * time.Millisecond
	// compactionCheck is how often etcd compares what a compaction has left with what it did last time; memberCheck
	// is how often it looks for a version of the members that all of them have.
	compactionCheck, memberCheck = time.Minute, 5 * time.Second
	// tokenSeconds and bcryptCost are of no use without users, but etcd checks them.
	tokenSeconds, bcryptCost = 300, 10
	// shortestPing is how often a client of the socket may ask whether the connection lives.
	shortestPing = 5 * time.Second
)

var (
	errEnded = errors.New("nobody told it to")
	// errRemoved is the end of a member that the others have taken out.
	errRemoved = errors.New("this machine's member was taken out of the store that it shared with other machines, " +
		"which go on without it: keel reset --yes ends what is left here")
)

// endOf says why a server has ended by itself.
func endOf(server *etcdserver.EtcdServer) error {
	if server.IsIDRemoved(uint64(server.MemberID())) {
		return errRemoved
	}
	return errEnded
}

// member is an etcd inside this process, alone or one of several, and the unix socket at which etcdctl finds it. It is
// put together from etcd's parts: etcd's own package for this, embed, brings debug pages that look methods up by names
// that only the running program knows, for which the linker keeps every method of every type.
type member struct {
	server *etcdserver.EtcdServer
	rpc    *grpc.Server
	// peers answers other members; nil where there can be none.
	peers *http.Server
	// failed tells how it ended by itself.
	failed  chan error
	closing chan struct{}
	once    sync.Once
}

// startMember opens the store, and has it answer at the socket, and at the listener for peers if that is not nil, which
// it owns from then on. The member can be used once its server says that it is ready.
func startMember(c config.ServerConfig, listener, peers net.Listener) (m *member, err error) {
	defer func() { // also where the library has ended the goroutine
		if m == nil {
			_ = listener.Close()
			if peers != nil {
				_ = peers.Close()
			}
		}
	}()
	server, err := etcdserver.NewServer(c)
	if err != nil {
		return nil, err
	}
	server.Start()
	m = &member{
		server: server, failed: make(chan error, 1), closing: make(chan struct{}),
		rpc: v3rpc.Server(server, nil, nil,
			grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: shortestPing})),
	}
	if peers != nil {
		m.peers = newPeerServer(server, c.Logger)
		go m.servePeers(peers)
	}
	go m.serve(listener)
	go func() {
		<-server.StopNotify()
		m.fail(endOf(server))
	}()
	return m, nil
}

// listen takes the place of a socket that a killed process has left: the data directory is locked.
func listen(path string) (net.Listener, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("making the store's socket: %w", err)
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: path})
	if err != nil {
		return nil, fmt.Errorf("making the store's socket: %w", err)
	}
	return listener, nil
}

func (m *member) serve(listener net.Listener) {
	select {
	case <-m.server.ReadyNotify():
		if err := m.rpc.Serve(listener); err != nil {
			m.fail(err)
		}
	case <-m.server.StopNotify():
		_ = listener.Close()
	}
}

// servePeers begins before the member is ready, which it gets by what its peers say.
func (m *member) servePeers(listener net.Listener) {
	if err := m.peers.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		m.fail(fmt.Errorf("serving its peers: %w", err))
	}
}

// fail reports an end that is not a stop.
func (m *member) fail(err error) {
	select {
	case <-m.closing:
	default:
		select {
		case m.failed <- err:
		default: // the first is the cause
		}
	}
}

// close ends the socket's clients, then the store.
func (m *member) close() {
	m.once.Do(func() { close(m.closing) })
	m.rpc.Stop()
	m.server.Stop() // which leads no longer, as its peers hear
	if m.peers != nil {
		_ = m.peers.Close()
	}
}

// Member is what a restored store says of its only member: the member's name, the cluster's token, and the URL for
// peers. The token makes ids that no store had: members of what it was before have nothing to do with it.
func Member() (name, token, peer string) { return memberName, uuid.NewString(), "http://" + memberPeer }

// memberConfig is that of a lone member whose files lie in dir, and which clients reach at the URL of a unix socket.
func memberConfig(dir string, client url.URL, log *zap.Logger) config.ServerConfig {
	peers := types.URLs{{Scheme: "http", Host: memberPeer}}
	return config.ServerConfig{
		Name:                memberName,
		DataDir:             dir,
		ClientURLs:          types.URLs{client},
		PeerURLs:            peers,
		InitialPeerURLsMap:  types.URLsMap{memberName: peers},
		InitialClusterToken: clusterToken,
		NewCluster:          true,
		MaxLearners:         membership.DefaultMaxLearners,
		StrictReconfigCheck: true,

		TickMs:                     tickMilliseconds,
		ElectionTicks:              electionTicks,
		InitialElectionTickAdvance: true,
		PreVote:                    true,

		SnapshotCount:          snapshotEntries,
		SnapshotCatchUpEntries: catchUpEntries,
		MaxSnapFiles:           keptFiles,
		MaxWALFiles:            keptFiles,
		QuotaBackendBytes:      quotaBytes,
		BackendFreelistType:    bbolt.FreelistMapType,
		MaxTxnOps:              requestOperations,
		MaxRequestBytes:        requestBytes,
		MaxConcurrentStreams:   math.MaxUint32,

		AutoCompactionMode:          "periodic", // of no retention: the library's store compacts
		CompactHashCheckTime:        compactionCheck,
		DowngradeCheckTime:          memberCheck,
		WarningApplyDuration:        slowApply,
		WarningUnaryRequestDuration: slowRequest,

		AuthToken:  "simple",
		TokenTTL:   tokenSeconds,
		BcryptCost: bcryptCost,

		V2Deprecation:     config.V2DeprDefault,
		Metrics:           "basic",
		Logger:            log,
		ServerFeatureGate: features.NewDefaultServerFeatureGate(memberName, log),
	}
}
