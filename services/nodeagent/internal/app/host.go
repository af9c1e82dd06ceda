package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"go.uber.org/zap"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/daemon"
	"keelson.dev/services/nodeagent/internal/cgroup"
	"keelson.dev/services/nodeagent/internal/cgroup/cgroupfake"
	"keelson.dev/services/nodeagent/internal/containerconfig"
	"keelson.dev/services/nodeagent/internal/kubeletmetrics"
	"keelson.dev/services/nodeagent/internal/memory"
	"keelson.dev/services/nodeagent/internal/node"
	"keelson.dev/services/nodeagent/internal/podfiles"
	"keelson.dev/services/nodeagent/internal/pressure"
	"keelson.dev/services/nodeagent/internal/runtime"
	"keelson.dev/services/nodeagent/internal/runtime/cri"
	"keelson.dev/services/nodeagent/internal/runtime/fake"
	"keelson.dev/services/nodeagent/internal/volume"
	"keelson.dev/services/nodeagent/internal/volume/mount"
	"keelson.dev/services/nodeagent/internal/volume/mountfake"
)

// host is the base of a node: the runtime, the kernel and the disk.
type host struct {
	runtime runtime.Runtime
	// calls counts the calls to the runtime.
	calls   *kubeletmetrics.Calls
	version runtime.Version
	status  runtime.Status
	files   podfiles.Root
	cgroups *cgroup.Tree
	// driver is the owner of the cgroup hierarchy.
	driver  cgroup.Driver
	mounter volume.Mounter
	ranges  *podfiles.UserRanges
	facts   node.Facts
	// rules determine when Pods are evicted.
	rules pressure.Rules
	// memory determines the swap, protection and throttling of Pods.
	memory memory.Rules
	// hostsFile is the node's own /etc/hosts, resolver its resolv.conf, upstream systemd-resolved's.
	hostsFile          []byte
	resolver, upstream containerconfig.Resolver
	close              func() error
}

// openHost creates directories and cgroups and waits for the runtime.
func openHost(ctx context.Context, c Config) (*host, error) {
	h := &host{files: podfiles.Root{Dir: c.RootDir, LogDir: c.LogsDir}, calls: kubeletmetrics.NewCalls(),
		close: func() error { return nil }}
	for _, dir := range []string{c.RootDir, c.LogsDir} {
		if err := os.MkdirAll(dir, 0o750); err != nil {
			return nil, fmt.Errorf("making the directory %s: %w", dir, err)
		}
	}
	if err := h.openRuntime(ctx, c); err != nil {
		return nil, err
	}
	if err := h.openKernel(ctx, c); err != nil {
		return nil, errors.Join(err, h.close())
	}
	if err := h.measure(c); err != nil {
		return nil, errors.Join(err, h.close())
	}
	return h, nil
}

// openRuntime connects to the runtime and waits until it answers.
func (h *host) openRuntime(ctx context.Context, c Config) error {
	if c.Simulated {
		h.runtime = fake.New()
	} else {
		r, err := cri.Connect(c.RuntimeEndpoint, c.Log, h.calls.Intercept)
		if err != nil {
			return err
		}
		h.runtime, h.close = r, r.Close
	}
	for waited := time.Duration(0); ; waited += time.Second {
		err := h.ask(ctx)
		if err == nil {
			c.Log.Info("container runtime answers", zap.String("name", h.version.Name),
				zap.String("version", h.version.Version), zap.String("cgroupDriver", h.status.CgroupDriver))
			return nil
		}
		if waited%(10*time.Second) == 0 {
			c.Log.Info("waiting for the container runtime", zap.String("endpoint", c.RuntimeEndpoint),
				zap.Duration("waited", waited), zap.Error(err))
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), h.close())
		case <-time.After(time.Second):
		}
	}
}

func (h *host) ask(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if h.version, err = h.runtime.Version(ctx); err != nil {
		return err
	}
	h.status, err = h.runtime.Status(ctx)
	return err
}

// openKernel opens cgroups, mounts and user IDs.
func (h *host) openKernel(ctx context.Context, c Config) error {
	h.driver = cmp.Or(cgroup.Driver(c.CgroupDriver), cgroup.Driver(h.status.CgroupDriver), cgroup.Cgroupfs)
	var kernel cgroup.Kernel = cgroupfake.New(cgroup.Unified)
	h.mounter = &mountfake.Mounter{}
	if !c.Simulated {
		if err := cgroup.Mounted(); err != nil {
			return err
		}
		kernel, h.mounter = cgroup.NewHost(h.driver), mount.Kernel{}
	}
	var err error
	if h.cgroups, err = cgroup.NewTree(kernel, h.driver, c.CgroupRoot, c.PidsLimit); err != nil {
		return fmt.Errorf("--cgroup-root: %w", err)
	}
	whole, err := podfiles.HostRange(ctx, int(c.MaxPods))
	if err != nil {
		return err
	}
	h.ranges, err = podfiles.OpenUserRanges(h.files, whole)
	if h.ranges == nil {
		return err
	}
	if err != nil {
		c.Log.Warn("some Pods get new ranges of user IDs", zap.Error(err))
	}
	return nil
}

// measure reads the properties of the machine and creates the cgroups of all Pods.
func (h *host) measure(c Config) error {
	h.facts = node.Facts{
		Name: c.NodeName, IPs: c.NodeIPs, Port: int32(c.Port), Labels: c.Labels, Taints: c.Taints, PodCIDR: c.PodCIDR,
		MaxPods: c.MaxPods,
	}
	if len(h.facts.IPs) == 0 {
		h.facts.IPs = []string{node.DefaultIP()}
	}
	if err := node.Machine(&h.facts, c.RootDir); err != nil {
		return err
	}
	if err := h.reserve(c); err != nil {
		return err
	}
	h.facts.Info.ContainerRuntimeVersion = h.version.Name + "://" + h.version.Version
	h.facts.Info.KubeletVersion = daemon.WithVersion(kubernetesVersion)
	var err error
	if h.hostsFile, err = optionalFile("/etc/hosts"); err != nil {
		return err
	}
	if err := h.readResolvers(c.ResolvConf); err != nil {
		return err
	}
	return h.ensureCgroups(c)
}

// ensureCgroups creates the cgroups above the Pods. It returns an error if the machine cannot hold a setting of memory.
func (h *host) ensureCgroups(c Config) error {
	machine := memory.Machine{CgroupV2: h.cgroups.Mode() == cgroup.Unified, Memory: h.facts.Memory,
		PageSize: int64(os.Getpagesize())}
	allocatable := h.facts.Allocatable()
	machine.Allocatable = allocatable.Memory().Value()
	if swap := h.facts.Info.Swap; swap != nil && !c.Simulated {
		machine.Swap = ptr.Deref(swap.Capacity, 0)
	}
	var err error
	if h.memory, err = c.Memory.Rules(machine); err != nil {
		return err
	}
	h.cgroups = h.cgroups.WithMemory(h.memory)
	if err := h.cgroups.EnsureNode(h.facts.PodLimits(c.Reserved.HoldsPods())); err != nil {
		return err
	}
	if h.memory, err = h.memory.OnKernel(h.cgroups.LimitsSwap()); err != nil {
		return err
	}
	h.cgroups = h.cgroups.WithMemory(h.memory)
	return nil
}

// reserve adds what is kept from Pods to the facts. A simulated node is never short of anything.
func (h *host) reserve(c Config) (err error) {
	if h.facts.Reserved, err = c.Reserved.Amounts(); err != nil {
		return err
	}
	if err := h.facts.CheckReserved(); err != nil || c.Simulated {
		return err
	}
	if h.rules, err = c.Pressure.Rules(); err != nil {
		return err
	}
	h.facts.Headroom = h.rules.Headroom(h.facts.Memory, h.facts.Storage)
	if c.Reserved.HoldsPods() {
		h.rules = h.rules.HoldPods()
	}
	return nil
}

// upstreamOfSystemd is where systemd-resolved lists its upstream servers.
const upstreamOfSystemd = "/run/systemd/resolve/resolv.conf"

// readResolvers reads the host's name resolution; without a file name, it reads nothing.
func (h *host) readResolvers(resolvConf string) error {
	if resolvConf == "" {
		return nil
	}
	for file, into := range map[string]*containerconfig.Resolver{resolvConf: &h.resolver,
		upstreamOfSystemd: &h.upstream} {
		content, err := optionalFile(file)
		if err != nil {
			return err
		}
		*into = containerconfig.ParseResolver(string(content))
	}
	return nil
}

// optionalFile reads a file that may be missing; no name counts as an empty file.
func optionalFile(name string) ([]byte, error) {
	if name == "" {
		return nil, nil
	}
	data, err := os.ReadFile(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	return data, nil
}

// configNode returns what the configurations of all Pods share.
func (h *host) configNode(c Config) containerconfig.Node {
	seccomp := c.SeccompRoot
	if seccomp == "" {
		seccomp = filepath.Join(c.RootDir, "seccomp")
	}
	return containerconfig.Node{
		ClusterDNS: c.ClusterDNS, ClusterDomain: c.ClusterDomain, Resolver: h.resolver, Upstream: h.upstream,
		SeccompRoot:    seccomp,
		SeccompDefault: c.SeccompDefault,
		SELinux:        hasSELinux(),
		MemoryCapacity: h.facts.Memory, Memory: h.memory,
	}
}

// hasSELinux reports whether the kernel runs with SELinux: if so, and if the host has a policy, SELinux has a file
// system.
func hasSELinux() bool {
	_, err := os.Stat("/sys/fs/selinux/enforce")
	return err == nil
}
