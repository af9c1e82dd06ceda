// Package podnetwork gives the Pods of a node their network: the plugins' configuration, the ways to the other nodes'
// Pods, and the way out.
//
//	decide.go, decide_*.go   the network as it shall be (pure)
//	kernel.go, kernel_*.go   makes it so, by netlink
//	firewall.go              what Pods send out, and what they may not reach
//	network.go               follows the Nodes and the links
package podnetwork

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/vishvananda/netlink"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"keelson.dev/kit/follow"
	"keelson.dev/kit/hostports"
	"keelson.dev/kit/keptport"
	"keelson.dev/kit/wakeup"
	"keelson.dev/services/nodeagent/internal/wholefile"
)

const (
	// settleFor is how long to wait for further changes after one.
	settleFor = 100 * time.Millisecond
	// retryAfter is how long after a failure the next try follows; lookEvery is how often the kernel is checked
	// without a change.
	retryAfter = 2 * time.Second
	lookEvery  = 30 * time.Second
	// maxLinkName is the maximum length of a link's name.
	maxLinkName = 15
	// fileName sorts before the configurations of other programs.
	fileName = "10-keelson.conflist"
)

// problemNoRange is why a new node has no network.
const problemNoRange = "the Node has no podCIDR yet"

// Config is what a Network needs.
type Config struct {
	// Nodes are all Nodes; the caller runs the informer.
	Nodes cache.SharedIndexInformer
	Log   *zap.Logger
	// NodeName is the name of this node.
	NodeName string
	Mode     Mode
	Cluster  []netip.Prefix
	// ConfigDir is where the runtime looks for the plugins' configuration.
	ConfigDir string
	CNI       CNI
	// VXLANID is the number of the network if Mode is VXLAN.
	VXLANID int
	// Changed is called when the network becomes ready or unready, or its problem changes.
	Changed func(ctx context.Context)
}

// Network maintains the network of this node's Pods.
type Network struct {
	Config
	kernel kernel
	wake   wakeup.Signal
	// followed reports whether all initial Nodes are known.
	followed cache.InformerSynced
	// firewall is what this process wrote last; only sync uses it.
	firewall *Firewall
	// closing is held while the table of ports is closed, so that the last decision is written last.
	closing sync.Mutex

	mu    sync.Mutex // guards all fields below
	known map[string]Node
	// problem is why Pods have no network; empty once they have one. others are problems with other nodes.
	problem string
	others  []string
	// streams is where the runtime last served sessions, unless that port is kept anyway.
	streams []keptport.Port
}

// New returns the Network of a node.
func New(c Config) (*Network, error) {
	n := &Network{Config: c, wake: wakeup.New(),
		kernel: kernel{bridge: c.CNI.Bridge, tunnel: tunnelName(c.CNI.Bridge), vxlanID: c.VXLANID, cluster: c.Cluster},
		known:  map[string]Node{}, problem: problemNoRange}
	registration, err := c.Nodes.AddEventHandler(follow.Handler(n.set, n.gone))
	if err != nil {
		return nil, fmt.Errorf("watching Nodes: %w", err)
	}
	n.followed = registration.HasSynced
	return n, nil
}

// tunnelName derives the device's name from the bridge's, which no other node of the machine uses.
func tunnelName(bridge string) string {
	return bridge[:min(len(bridge), maxLinkName-1)] + "x"
}

func (n *Network) set(node *corev1.Node) {
	now := Of(node)
	n.mu.Lock()
	before, there := n.known[node.Name]
	n.known[node.Name] = now
	n.mu.Unlock()
	if !there || !before.equal(now) {
		n.look()
	}
}

func (n *Network) gone(node *corev1.Node) {
	n.mu.Lock()
	delete(n.known, node.Name)
	n.mu.Unlock()
	n.look()
}

func (n *Network) look() {
	n.wake.Send()
}

// Problem returns why Pods have no network; empty once they have one.
func (n *Network) Problem() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.problem
}

// Others returns which other nodes' Pods cannot be reached, and why.
func (n *Network) Others() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.others)
}

// Run maintains the network until ctx ends, and then leaves it as it is: Pods run on.
func (n *Network) Run(ctx context.Context) {
	var parts sync.WaitGroup
	defer parts.Wait()
	parts.Go(func() { n.followLinks(ctx) })
	// Before all Nodes are known, some of their routes would look superfluous.
	if !cache.WaitForCacheSync(ctx.Done(), n.followed) {
		return
	}
	for {
		again := lookEvery
		if err := n.sync(ctx); err != nil {
			again = retryAfter
		}
		select {
		case <-ctx.Done():
			return
		case <-n.wake:
			again = settleFor
		case <-time.After(again):
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(again):
		}
	}
}

// sync brings the network up to date.
func (n *Network) sync(ctx context.Context) error {
	own, others := n.snapshot()
	if len(own.Ranges) == 0 {
		n.tell(ctx, problemNoRange, nil)
		return nil
	}
	plan := Decide(Input{Mode: n.Mode, Cluster: n.Cluster, Own: own, Others: others, MTU: underlayMTU(own.Addresses)})
	if plan.Conflict != "" {
		n.tell(ctx, plan.Conflict, nil)
		return errors.New(plan.Conflict)
	}
	problems, err := n.kernel.apply(plan)
	if err == nil {
		err = n.configure(plan)
	}
	if err != nil {
		n.tell(ctx, err.Error(), nil)
		return err
	}
	problems = append(plan.Problems, problems...)
	if err := n.ClosePorts(); err != nil {
		problems = append(problems, err.Error())
	}
	if err := n.guard(firewallOf(n.Config, plan, own, others)); err != nil {
		// Without it Pods still reach each other and the machine, all that most work on one machine needs.
		problems = append(problems, "Pods cannot reach beyond the cluster: "+err.Error())
	}
	n.tell(ctx, "", problems)
	if len(problems) > 0 {
		return errors.New("some nodes are not reached")
	}
	return nil
}

// ClosePorts takes back the ports that the machine keeps from Pods that took them earlier. It does not ask the API:
// a kept port may be the way to it.
func (n *Network) ClosePorts() error {
	n.closing.Lock()
	defer n.closing.Unlock()
	cni := n.cni()
	if cni.PortTable == "" {
		return nil
	}
	if err := hostports.Close(cni.PortTable, cni.Kept); err != nil {
		return fmt.Errorf("ports of the machine may be held by Pods: %w", err)
	}
	return nil
}

// KeepStreams keeps the address at which the runtime is about to be asked for a session, replacing the previous
// one: the runtime may choose another port each time it starts, and reveals it only with a session. If it returns
// no error, no Pod answers there.
func (n *Network) KeepStreams(at netip.AddrPort) error {
	port := keptport.At("runtime-streams", keptport.TCP, at)
	streams := []keptport.Port{port}
	if slices.ContainsFunc(n.CNI.Kept, func(k keptport.Port) bool {
		return !k.NodePorts && k.Has(port.Address, port.Protocol, port.First)
	}) {
		streams = nil
	}
	n.mu.Lock()
	news := !slices.Equal(n.streams, streams)
	n.streams = streams
	n.mu.Unlock()
	if news {
		n.look() // the plugins need it, too
	}
	return n.ClosePorts()
}

// cni returns the current settings of the plugins.
func (n *Network) cni() CNI {
	n.mu.Lock()
	defer n.mu.Unlock()
	out := n.CNI
	out.Kept = slices.Concat(n.CNI.Kept, n.streams)
	return out
}

// guard writes the firewall unless the kernel has it as it was written; only after that may the loopback address
// pass.
func (n *Network) guard(want Firewall) error {
	if n.firewall == nil || !n.firewall.equal(want) || !hasFirewall(want) {
		if err := setFirewall(want); err != nil {
			return err
		}
		n.firewall = &want
	}
	return n.kernel.routeLoopback()
}

// Table returns the name of the firewall table of a node's Pods.
func Table(bridge string) string { return "keelson-pods-" + bridge }

func (n *Network) snapshot() (own Node, others []Node) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for name, node := range n.known {
		if name == n.NodeName {
			own = node
		} else {
			others = append(others, node)
		}
	}
	return own, others
}

// configure writes the plugins' configuration if it differs; the runtime never reads half of it.
func (n *Network) configure(plan Plan) error {
	text, err := n.cni().Config(plan)
	if err != nil {
		return err
	}
	file := filepath.Join(n.ConfigDir, fileName)
	if have, err := os.ReadFile(file); err == nil && string(have) == text {
		return nil
	}
	if err := os.MkdirAll(n.ConfigDir, 0o755); err != nil {
		return fmt.Errorf("making the folder of the network configuration: %w", err)
	}
	err = wholefile.Clear(n.ConfigDir, fileName) // an agent that was killed here wrote the same file
	if err := errors.Join(err, wholefile.Write(file, []byte(text), 0o600)); err != nil {
		return fmt.Errorf("writing the network configuration: %w", err)
	}
	return nil
}

// tell stores the state of the network, and logs changes.
func (n *Network) tell(ctx context.Context, problem string, others []string) {
	n.mu.Lock()
	changed, news := n.problem != problem, !slices.Equal(n.others, others)
	n.problem, n.others = problem, others
	n.mu.Unlock()
	switch {
	case changed && problem == "":
		n.Log.Info("the network of Pods is there")
	case changed:
		n.Log.Warn("Pods have no network", zap.String("reason", problem))
	}
	if news && len(others) > 0 {
		n.Log.Warn("Pods do not reach everywhere: " + strings.Join(others, "; "))
	}
	if changed {
		n.Changed(ctx)
	}
}

// followLinks checks the network when a link of the machine has changed: what the kernel forgets when a link is
// switched off is restored. Changes of the Pods' own links, which are ports of the bridge, do not matter.
func (n *Network) followLinks(ctx context.Context) {
	updates := make(chan netlink.LinkUpdate)
	err := netlink.LinkSubscribeWithOptions(updates, ctx.Done(), netlink.LinkSubscribeOptions{
		ErrorCallback: func(err error) { n.Log.Debug("following the links failed", zap.Error(err)) }})
	if err != nil {
		n.Log.Warn("links are not followed, only looked at from time to time", zap.Error(err))
		return
	}
	for update := range updates {
		if update.Link.Attrs().MasterIndex == 0 {
			n.look()
		}
	}
}
