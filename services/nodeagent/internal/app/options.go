// Package app assembles a nodeagent: its flags (options.go), its host (host.go), and its parts (app.go).
package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"keelson.dev/kit/client"
	"keelson.dev/kit/daemon"
	"keelson.dev/kit/keptport"
	"keelson.dev/services/nodeagent/internal/cgroup"
	"keelson.dev/services/nodeagent/internal/conntrack"
	"keelson.dev/services/nodeagent/internal/cpupin"
	"keelson.dev/services/nodeagent/internal/gc"
	"keelson.dev/services/nodeagent/internal/memory"
	"keelson.dev/services/nodeagent/internal/podnetwork"
	"keelson.dev/services/nodeagent/internal/pressure"
	"keelson.dev/services/nodeagent/internal/reserved"
	"keelson.dev/services/nodeagent/internal/review"
	"keelson.dev/services/nodeagent/internal/runtime/cri"
)

// options are the nodeagent's flags.
type options struct {
	client client.Options
	config Config
	taints []string
	kept   []string
	nodeIP string
	file   kubeletFile
}

// Daemon describes the program.
func Daemon() daemon.Daemon {
	o := newOptions()
	return daemon.Daemon{Name: name, Short: "Run the Pods of one node", Options: o, Run: o.run}
}

func newOptions() *options {
	host, _ := os.Hostname() // without it --node-name must be given
	return &options{config: Defaults(strings.ToLower(host))}
}

// Defaults returns the configuration of a node without flags.
func Defaults(name string) Config {
	return Config{
		NodeName: name, RootDir: "/var/lib/keelson/nodeagent", LogsDir: "/var/log/pods",
		RuntimeEndpoint: "unix:///run/containerd/containerd.sock",
		CgroupRoot:      "/kubepods", BindAddress: "0.0.0.0", Port: 10250, MaxPods: 110, ClusterDomain: "cluster.local",
		ResolvConf: "/etc/resolv.conf",
		PidsLimit:  4096,
		Reserved:   reserved.DefaultSettings(), Memory: memory.DefaultSettings(),
		CPUs: cpupin.DefaultSettings(), Pressure: pressure.DefaultSettings(),
		PodNetwork: podnetwork.DefaultSettings(), Reviews: review.DefaultSettings(), SystemLogs: true,
		LogMaxSize: 10 << 20, LogMaxFiles: 5, ImageGC: gc.DefaultSettings(),
		ServiceProxy: proxyNftables, ServiceTable: "keelson-services", ServiceHealth: ":10256",
		Conntrack: conntrack.Default(),
	}
}

// AddFlags implements daemon.Options.
func (o *options) AddFlags(fs *pflag.FlagSet) {
	o.client.AddFlags(fs)
	o.file.addFlags(fs)
	c := &o.config
	c.Certificates.AddFlags(fs)
	fs.StringVar(&c.NodeName, "node-name", c.NodeName, "name of this node in the API; the host's name by default")
	fs.StringVar(&o.nodeIP, "node-ip", "", "address of this node, or two of different families, comma-separated; the "+
		"first global one of the host by default")
	fs.StringVar(&c.RootDir, "root-dir", c.RootDir, "directory of Pods' volumes and the agent's records")
	fs.StringVar(&c.LogsDir, "pod-logs-dir", c.LogsDir, "directory of the containers' logs")
	fs.StringVar(&c.AddressesDir, "pod-addresses-dir", "",
		"dataDir of the network plugin host-local, if no other runtime "+
			"uses it: addresses of sandboxes that failed are given back; empty leaves them alone")
	fs.StringVar(&c.PodManifestPath, "pod-manifest-path", c.PodManifestPath,
		"directory of manifests (YAML or JSON, one Pod each) of static Pods, which run with or without an API; empty "+
			"for none")
	fs.StringVar(&c.RuntimeEndpoint, "container-runtime-endpoint", c.RuntimeEndpoint,
		"CRI v1 endpoint of the container runtime, unix:///PATH")
	fs.StringVar(&c.CgroupRoot, "cgroup-root", c.CgroupRoot,
		"cgroup under which all Pods lie; no two nodeagents of a machine may share it")
	fs.StringVar(&c.CgroupDriver, "cgroup-driver", c.CgroupDriver,
		"cgroupfs or systemd; the one that the runtime names by default")
	fs.Int64Var(&c.PidsLimit, "pod-max-pids", c.PidsLimit, "limit of processes and threads per Pod; 0 or -1 sets none")
	fs.StringVar(&c.PodCIDR, "pod-cidr", c.PodCIDR, "range of this node's Pods, set on the Node if it has none")
	c.PodNetwork.AddFlags(fs)
	c.Reserved.AddFlags(fs)
	c.Memory.AddFlags(fs)
	c.CPUs.AddFlags(fs)
	c.Pressure.AddFlags(fs)
	fs.Int64Var(&c.MaxPods, "max-pods", c.MaxPods, "how many Pods this node takes")
	fs.StringToStringVar(&c.Labels, "node-labels", nil, "labels that the Node gets, KEY=VALUE, comma-separated")
	fs.StringSliceVar(&o.taints, "register-with-taints", o.taints,
		"taints that a new Node gets, KEY[=VALUE]:EFFECT, comma-separated")
	fs.StringVar(&c.BindAddress, "bind-address", c.BindAddress,
		"address on which the node API (logs, exec, attach, port-forward) listens")
	fs.IntVar(&c.Port, "port", c.Port, "port of the node API; 0 switches it off")
	fs.StringVar(&c.CertFile, "tls-cert-file", c.CertFile,
		"PEM certificate of the node API; what replaces the file counts for new connections")
	fs.StringVar(&c.KeyFile, "tls-private-key-file", c.KeyFile, "PEM key of --tls-cert-file")
	fs.StringVar(&c.ClientCAFile, "client-ca-file", c.ClientCAFile,
		"PEM bundle of the CA that signs the clients of the node API; what replaces the file counts for new "+
			"connections")
	c.Reviews.AddFlags(fs)
	fs.BoolVar(&c.SystemLogs, "enable-system-log-handler", c.SystemLogs,
		"show the machine's logs (/var/log) at /logs/ of the node API, for reading")
	fs.StringSliceVar(&c.ClusterDNS, "cluster-dns", c.ClusterDNS,
		"addresses of the cluster's DNS servers, comma-separated")
	fs.StringVar(&c.ClusterDomain, "cluster-domain", c.ClusterDomain, "domain of the cluster's names")
	fs.StringVar(&c.ResolvConf, "resolv-conf", c.ResolvConf,
		"name resolution that Pods take over from the host, without servers on its loopback, which Pods do not reach; "+
			"empty for none")
	fs.StringSliceVar(&c.AllowedSysctls, "allowed-unsafe-sysctls", c.AllowedSysctls,
		"sysctls beyond the safe ones that Pods may set; a * at the end stands for any rest")
	fs.StringVar(&c.SeccompRoot, "seccomp-root", "",
		"directory of localhost seccomp profiles; ROOT-DIR/seccomp by default")
	fs.BoolVar(&c.SeccompDefault, "seccomp-default", c.SeccompDefault,
		"give containers that name no seccomp profile the runtime's default one")
	fs.Int64Var(&c.LogMaxSize, "container-log-max-size", c.LogMaxSize, "bytes after which a container's log is rotated")
	fs.IntVar(&c.LogMaxFiles, "container-log-max-files", c.LogMaxFiles,
		"how many log files a container keeps, the current one included")
	c.ImagePulls.AddFlags(fs)
	c.ImageGC.AddFlags(fs)
	c.ImageCredentials.AddFlags(fs)
	fs.StringVar(&c.ServiceProxy, "service-proxy", c.ServiceProxy,
		"who carries the traffic of Services on this node: nftables for this agent, none for something else")
	fs.StringVar(&c.ServiceTable, "service-proxy-table", c.ServiceTable,
		"firewall table of --service-proxy=nftables; no two nodeagents of a machine may share it")
	fs.StringVar(&c.ServiceHealth, "service-proxy-health-address", c.ServiceHealth,
		"[IP]:PORT at which load balancers ask (/healthz) whether to send to this node; empty for none")
	c.Conntrack.AddFlags(fs)
	fs.StringSliceVar(&c.ServiceRanges, "service-cluster-ip-range", nil, "range of Services' own addresses, or one of "+
		"each address family, comma-separated: no Service takes one of them, or of --cluster-cidr, as an external IP")
	fs.StringSliceVar(&o.kept, "kept-ports", nil, "ports of the machine that no Pod gets as a hostPort and no Service "+
		"by an external IP, beyond the agent's own, node ports and the API server's: "+
		"[IP:]PORT[-PORT]/PROTOCOL=KEEPER, comma-separated")
}

// Validate implements daemon.Options. Settings of the kubelet's file become the values of flags that nothing else
// set.
func (o *options) Validate() error {
	if err := o.file.fill(); err != nil {
		return err
	}
	return o.file.blame(o.check())
}

func (o *options) check() error {
	c := &o.config
	if o.nodeIP != "" {
		c.NodeIPs = strings.Split(o.nodeIP, ",")
	}
	var err error
	if c.Taints, err = parseTaints(o.taints); err != nil {
		return fmt.Errorf("--register-with-taints: %w", err)
	}
	c.KeptPorts = nil
	for _, text := range o.kept {
		kept, err := keptport.Parse(text)
		if err != nil {
			return fmt.Errorf("--kept-ports: %w", err)
		}
		c.KeptPorts = append(c.KeptPorts, kept)
	}
	return cmp.Or(o.validateClient(), c.validate())
}

// validateClient requires no kubeconfig if the agent is about to write one.
func (o *options) validateClient() error {
	own := &o.config.Certificates
	if err := own.Validate(o.client.Kubeconfig); err != nil || own.Bootstrap != "" {
		return err
	}
	return o.client.Validate()
}

// validate returns an error if a configuration is invalid, in terms of its flags.
func (c *Config) validate() error {
	if problems := validation.IsDNS1123Subdomain(c.NodeName); len(problems) > 0 {
		return fmt.Errorf("--node-name: %q: %s", c.NodeName, problems[0])
	}
	for _, ip := range c.NodeIPs {
		if _, err := netip.ParseAddr(ip); err != nil {
			return fmt.Errorf("--node-ip: %q is no IP address", ip)
		}
	}
	if len(c.NodeIPs) > 2 {
		return fmt.Errorf("--node-ip: %d addresses are given, at most two are allowed", len(c.NodeIPs))
	}
	for _, dir := range []struct{ flag, path string }{{"--root-dir", c.RootDir}, {"--pod-logs-dir", c.LogsDir}} {
		if !filepath.IsAbs(dir.path) {
			return fmt.Errorf("%s: %q must be an absolute path", dir.flag, dir.path)
		}
	}
	for _, dir := range []struct{ flag, path string }{
		{"--pod-addresses-dir", c.AddressesDir}, {"--pod-manifest-path", c.PodManifestPath}} {
		if dir.path != "" && !filepath.IsAbs(dir.path) {
			return fmt.Errorf("%s: %q must be an absolute path", dir.flag, dir.path)
		}
	}
	if err := cri.CheckEndpoint(c.RuntimeEndpoint); err != nil {
		return fmt.Errorf("--container-runtime-endpoint: %w", err)
	}
	return cmp.Or(c.validateCgroups(), c.Reserved.Validate(), c.Memory.Validate(), c.CPUs.Validate(),
		c.Pressure.Validate(), c.validateNumbers(), c.ImagePulls.Validate(), c.ImageGC.Validate(),
		c.ImageCredentials.Validate(), c.validateServer(), c.Reviews.Validate(), c.validateNetwork())
}

func (c *Config) validateCgroups() error {
	if !filepath.IsAbs(c.CgroupRoot) || filepath.Clean(c.CgroupRoot) != c.CgroupRoot || c.CgroupRoot == "/" {
		return fmt.Errorf("--cgroup-root: %q must be a clean absolute path below /", c.CgroupRoot)
	}
	if c.Memory.Tiered() && path.Dir(c.CgroupRoot) != "/" {
		return fmt.Errorf("--memory-reservation-policy: the kernel keeps no more for a cgroup than for those above "+
			"it: TieredReservation needs a --cgroup-root directly below /, unlike %q", c.CgroupRoot)
	}
	switch cgroup.Driver(c.CgroupDriver) {
	case "", cgroup.Cgroupfs, cgroup.Systemd:
		return nil
	}
	return fmt.Errorf("--cgroup-driver: %q must be cgroupfs or systemd", c.CgroupDriver)
}

func (c *Config) validateNumbers() error {
	switch {
	case c.MaxPods < 1:
		return fmt.Errorf("--max-pods: %d must be at least 1", c.MaxPods)
	case c.PidsLimit < -1:
		return fmt.Errorf("--pod-max-pids: %d must be at least 1, or 0 or -1 for no limit", c.PidsLimit)
	case c.Port < 0 || c.Port > 65535:
		return fmt.Errorf("--port: %d must be from 0 to 65535", c.Port)
	case c.LogMaxFiles < 2:
		return fmt.Errorf("--container-log-max-files: %d must be at least 2", c.LogMaxFiles)
	case c.LogMaxSize < 1:
		return fmt.Errorf("--container-log-max-size: %d must be at least 1", c.LogMaxSize)
	}
	return nil
}

func (c *Config) validateServer() error {
	const without = "--port=0 switches the node API off"
	switch {
	case c.Port == 0:
		return nil
	case (c.CertFile == "") != (c.KeyFile == ""):
		return errors.New("--tls-cert-file: needs --tls-private-key-file, and the reverse")
	case c.CertFile == "" && !c.Certificates.RotateServer:
		return errors.New("--tls-cert-file: the node API needs it, or --rotate-server-certificates; " + without)
	case c.ClientCAFile == "":
		return errors.New("--client-ca-file: the node API needs it; " + without)
	}
	return nil
}

func (c *Config) validateNetwork() error {
	if net.ParseIP(c.BindAddress) == nil {
		return fmt.Errorf("--bind-address: %q is no IP address", c.BindAddress)
	}
	if _, err := netip.ParsePrefix(c.PodCIDR); c.PodCIDR != "" && err != nil {
		return fmt.Errorf("--pod-cidr: %q is no range of addresses, like 10.244.1.0/24", c.PodCIDR)
	}
	if err := c.validateServices(); err != nil {
		return err
	}
	if err := c.validatePodNetwork(); err != nil {
		return err
	}
	for _, server := range c.ClusterDNS {
		if net.ParseIP(server) == nil {
			return fmt.Errorf("--cluster-dns: %q is no IP address", server)
		}
	}
	if problems := validation.IsDNS1123Subdomain(c.ClusterDomain); c.ClusterDomain != "" && len(problems) > 0 {
		return fmt.Errorf("--cluster-domain: %q: %s", c.ClusterDomain, problems[0])
	}
	return nil
}

func (c *Config) validateServices() error {
	switch c.ServiceProxy {
	case "", proxyNftables, proxyNone:
	default:
		return fmt.Errorf("--service-proxy: %q must be nftables or none", c.ServiceProxy)
	}
	if !tableForm.MatchString(c.ServiceTable) && c.ServiceProxy != "" {
		return fmt.Errorf("--service-proxy-table: %q must be 1 to 128 letters, digits, dots and dashes", c.ServiceTable)
	}
	for _, text := range c.ServiceRanges {
		if prefix, err := netip.ParsePrefix(text); err != nil || prefix != prefix.Masked() {
			return fmt.Errorf("--service-cluster-ip-range: %q must be a network without host bits, for example "+
				"10.96.0.0/16", text)
		}
	}
	if err := c.Conntrack.Validate(); err != nil {
		return err
	}
	return checkListen("--service-proxy-health-address", c.ServiceHealth)
}

// checkListen accepts an address without an IP as all of the machine's, and an empty one as none.
func checkListen(flag, address string) error {
	host, port, err := net.SplitHostPort(address)
	number, errPort := strconv.ParseUint(port, 10, 16)
	if address != "" && (err != nil || errPort != nil || number == 0 || host != "" && net.ParseIP(host) == nil) {
		return fmt.Errorf("%s: %q must be [IP]:PORT with a port from 1 to 65535, or empty", flag, address)
	}
	return nil
}

var tableForm = regexp.MustCompile(`^[A-Za-z0-9.-]{1,128}$`)

// validatePodNetwork treats a configuration without a mode as one that leaves the Pods' network to other programs.
func (c *Config) validatePodNetwork() error {
	c.PodNetwork.Mode = cmp.Or(c.PodNetwork.Mode, string(podnetwork.None))
	return c.PodNetwork.Validate()
}

var taintForm = regexp.MustCompile(`^([^=:]+)(?:=([^:]*))?:(NoSchedule|PreferNoSchedule|NoExecute)$`)

func parseTaints(texts []string) ([]corev1.Taint, error) {
	var out []corev1.Taint
	for _, text := range texts {
		parts := taintForm.FindStringSubmatch(text)
		if parts == nil {
			return nil,
				fmt.Errorf("%q must have the form KEY[=VALUE]:EFFECT, the effect being NoSchedule, PreferNoSchedule "+
					"or NoExecute", text)
		}
		out = append(out, corev1.Taint{Key: parts[1], Value: parts[2], Effect: corev1.TaintEffect(parts[3])})
	}
	return out, nil
}

func (o *options) run(ctx context.Context, e *daemon.Environment) error {
	config := o.config
	config.Environment = e
	if config.Kubeconfig = o.client.Kubeconfig; config.Certificates.Own() {
		return Run(ctx, config)
	}
	var err error
	if config.REST, err = o.client.Config(name); err != nil {
		return daemon.UsageError(err)
	}
	return Run(ctx, config)
}
