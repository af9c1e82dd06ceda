package command

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"keelson.dev/cli/internal/clusterdns"
	"keelson.dev/cli/internal/deployment"
	"keelson.dev/cli/internal/host"
	"keelson.dev/cli/internal/mesh"
	"keelson.dev/cli/internal/plan"
	"keelson.dev/cli/internal/sample"
)

// upFlags are the flags as they are typed.
type upFlags struct {
	nodes                   int
	podRange, serviceRange  string
	bindAddress             string
	port                    int
	sample                  bool
	podNetwork, dns, domain string
	cgroups                 string
	programs, images, level string
	timeout                 time.Duration
}

func newUp(g *global) *cobra.Command {
	flags := &upFlags{}
	command := &cobra.Command{
		Use:   "up",
		Short: "start the mesh and leave it running; started again, it starts only what is missing",
		Args:  exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			options, err := flags.options(g, c.Flags().Changed)
			if err != nil {
				return usageError{err}
			}
			return up(c, options)
		},
	}
	set := command.Flags()
	set.IntVar(&flags.nodes, "nodes", 1, "how many nodes run Pods, each with its own container runtime; 0 is the "+
		"control plane alone; default later: as many as there are")
	set.StringVar(&flags.podRange, "pod-range", "",
		"IPv4 network of the Pods, for example 10.244.0.0/16; default: one that this machine does not use")
	set.StringVar(&flags.serviceRange, "service-range", "",
		"IPv4 network of the Services; default: one that this machine does not use")
	set.StringVar(&flags.bindAddress, "bind-address", "0.0.0.0",
		"IPv4 address that the apiserver listens on; Pods reach it only there")
	set.IntVar(&flags.port, "port", 0, "port of the apiserver; 0 takes 6443 or the next free one")
	set.BoolVar(&flags.sample, "sample", true, "leave the sample Deployment hello running")
	set.StringVar(&flags.podNetwork, "pod-network", plan.Routes, "how Pods of different nodes reach each other: "+
		"routes or vxlan; default later: as it is")
	set.StringVar(&flags.dns, "dns", plan.CoreDNS, "who answers for the names of Services and Pods: coredns, which is "+
		"installed, none, or the address of what others install; default later: as it is")
	set.StringVar(&flags.domain, "cluster-domain", plan.DefaultDomain, "domain of the names of Services and Pods; "+
		"default later: as it is")
	set.StringVar(&flags.cgroups, "cgroup-driver", plan.Cgroupfs, "who keeps the cgroups of Pods: cgroupfs for the "+
		"container runtime itself, systemd where that runs the machine; default later: as it is")
	set.StringVar(&flags.programs, "programs", "", "folder of the daemons' and tools' programs; default: keel's own")
	set.StringVar(&flags.images, "images", "", "folder of the image archives to import; default: images beside keel")
	set.StringVar(&flags.level, "log-level", "info", "log level of the daemons: debug, info, warn or error")
	set.DurationVar(&flags.timeout, "timeout", 3*time.Minute, "how long the mesh may take to get ready")
	return command
}

func (f *upFlags) options(g *global, given func(flag string) bool) (mesh.UpOptions, error) {
	options := mesh.UpOptions{
		DataDir: g.dataDir, Nodes: f.nodes, Port: f.port, Sample: f.sample, Programs: f.programs, Images: f.images,
		LogLevel: f.level, Timeout: f.timeout,
	}
	if f.nodes < 0 || f.nodes > maxNodes {
		return options, fmt.Errorf("--nodes: %d must be between 0 and %d", f.nodes, maxNodes)
	}
	if !given("nodes") {
		options.Nodes = mesh.KeepNodes
	}
	if err := f.keptOptions(&options, given); err != nil {
		return options, err
	}
	if f.port < 0 || f.port > 65535 {
		return options, fmt.Errorf("--port: %d must be between 0 and 65535", f.port)
	}
	if f.timeout <= 0 {
		return options, fmt.Errorf("--timeout: %v must be greater than 0", f.timeout)
	}
	switch f.level {
	case "debug", "info", "warn", "error":
	default:
		return options, fmt.Errorf("--log-level: %q must be debug, info, warn or error", f.level)
	}
	var err error
	if options.BindAddress, err = netip.ParseAddr(f.bindAddress); err != nil || !options.BindAddress.Is4() {
		return options, fmt.Errorf("--bind-address: %q must be an IPv4 address", f.bindAddress)
	}
	if options.BindAddress.IsLoopback() {
		return options, fmt.Errorf("--bind-address: Pods cannot reach %s, a loopback address; "+
			"0.0.0.0 or an address of this machine is allowed", f.bindAddress)
	}
	if options.PodRange, err = parseRange("--pod-range", f.podRange); err != nil {
		return options, err
	}
	if options.ServiceRange, err = parseRange("--service-range", f.serviceRange); err != nil {
		return options, err
	}
	return options, fillFolders(&options)
}

// keptOptions takes over what was typed; what was not stays as it is.
func (f *upFlags) keptOptions(options *mesh.UpOptions, given func(flag string) bool) error {
	if f.podNetwork != plan.Routes && f.podNetwork != plan.VXLAN {
		return fmt.Errorf("--pod-network: %q must be routes or vxlan", f.podNetwork)
	}
	if err := plan.CheckDNS(f.dns); err != nil {
		return err
	}
	if problems := validation.IsDNS1123Subdomain(f.domain); len(problems) > 0 {
		return fmt.Errorf("--cluster-domain: %q: %s", f.domain, problems[0])
	}
	if f.cgroups != plan.Cgroupfs && f.cgroups != plan.Systemd {
		return fmt.Errorf("--cgroup-driver: %q must be cgroupfs or systemd", f.cgroups)
	}
	if given("cgroup-driver") {
		if err := host.CheckSystemd(); f.cgroups == plan.Systemd && err != nil {
			return fmt.Errorf("--cgroup-driver=systemd: %w", err)
		}
		options.CgroupDriver = f.cgroups
	}
	if given("pod-network") {
		options.PodNetwork = f.podNetwork
	}
	if given("dns") {
		options.DNS = f.dns
	}
	if given("cluster-domain") {
		options.Domain = f.domain
	}
	return nil
}

// maxNodes is far beyond what one machine carries; bridges' names have room for it.
const maxNodes = 99

func parseRange(flag, value string) (netip.Prefix, error) {
	if value == "" {
		return netip.Prefix{}, nil
	}
	prefix, err := netip.ParsePrefix(value)
	if err != nil {
		return prefix, fmt.Errorf("%s: %q must be an IPv4 network such as 10.244.0.0/16", flag, value)
	}
	return prefix, nil
}

// fillFolders looks beside keel for what no flag names.
func fillFolders(options *mesh.UpOptions) error {
	own, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding keel's own folder: %w", err)
	}
	if options.Programs == "" {
		options.Programs = filepath.Dir(own)
	}
	if options.Images == "" {
		options.Images = filepath.Join(filepath.Dir(own), "images")
	}
	for _, folder := range []*string{&options.Programs, &options.Images} {
		if *folder, err = filepath.Abs(*folder); err != nil {
			return fmt.Errorf("making %s absolute: %w", *folder, err)
		}
	}
	return nil
}

func up(c *cobra.Command, options mesh.UpOptions) error {
	layout, err := mesh.LayoutOf(options.DataDir)
	if err != nil {
		return usageError{err}
	}
	out := c.OutOrStdout()
	m := &mesh.Mesh{Layout: layout, Out: out}
	if err := mesh.Up(c.Context(), m, options); err != nil {
		return err
	}
	if m.HasDNS() {
		fmt.Fprintln(out, "==> cluster DNS")
		if err := m.InstallDNS(c.Context()); err != nil {
			return err
		}
	}
	if options.Sample && len(m.State.Nodes) > 0 {
		if err := runSample(c, m, options.Timeout); err != nil {
			return err
		}
	}
	if m.HasDNS() {
		if err := awaitDNS(c, m); err != nil {
			fmt.Fprintf(out, "    names do not resolve yet: %v\n", err)
		}
	}
	fmt.Fprintf(out, "\nThe mesh is up at %s.\n\n  export KUBECONFIG=%s\n", m.ServerURL(),
		layout.Kubeconfig(plan.AdminCertificate))
	fmt.Fprintf(out, "  %s get deployments,pods -o wide\n\n", filepath.Join(options.Programs, "kubectl"))
	fmt.Fprintf(out,
		"keel status shows the daemons, keel explain pod NAME why a Pod is where it is, keel down ends all of it.\n")
	return nil
}

// dnsPatience is how long the mesh waits for its DNS, which has started beside the sample.
const dnsPatience = 30 * time.Second

func awaitDNS(c *cobra.Command, m *mesh.Mesh) error {
	client, err := m.Client()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.Context(), dnsPatience)
	defer cancel()
	name := deployment.Name{Namespace: clusterdns.Namespace, Name: clusterdns.Name}
	return deployment.WaitAvailable(ctx, client, name, m.RunningPods, c.OutOrStdout())
}

func runSample(c *cobra.Command, m *mesh.Mesh, timeout time.Duration) error {
	fmt.Fprintln(c.OutOrStdout(), "==> sample Deployment hello")
	client, err := m.Client()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.Context(), timeout)
	defer cancel()
	there, err := sample.Exists(ctx, client)
	if err != nil {
		return err
	}
	if !there {
		if err := sample.Apply(ctx, client); err != nil {
			return err
		}
	}
	name := deployment.Name{Namespace: sample.Namespace, Name: sample.Name}
	return deployment.WaitAvailable(ctx, client, name, m.RunningPods, c.OutOrStdout())
}
