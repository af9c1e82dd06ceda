package command

import (
	"cmp"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	"keelson.dev/cli/internal/mesh"
	"keelson.dev/cli/internal/plan"
)

// nodeFlags are the typed flags of the commands that start nodes.
type nodeFlags struct {
	programs, images, level string
	deadline
}

func (f *nodeFlags) add(set *pflag.FlagSet, timeout time.Duration) {
	set.StringVar(&f.programs, "programs", "", "folder of the daemons' and tools' programs; default: keel's own")
	set.StringVar(&f.images, "images", "", "folder of the image archives to import; default: images beside keel")
	set.StringVar(&f.level, "log-level", "info", "log level of the daemons: debug, info, warn or error")
	f.deadline.add(set, timeout, "how long all of it may take, cluster DNS included")
}

func (f *nodeFlags) options(dataDir string) (mesh.Options, error) {
	options := mesh.Options{DataDir: dataDir, Programs: f.programs, Images: f.images, LogLevel: f.level}
	if err := f.deadline.check(); err != nil {
		return options, err
	}
	switch f.level {
	case "debug", "info", "warn", "error":
	default:
		return options, fmt.Errorf("--log-level: %q must be debug, info, warn or error", f.level)
	}
	return options, fillFolders(&options)
}

// meshFlags are the typed flags of the commands that start a mesh.
type meshFlags struct {
	nodeFlags
	podRange, serviceRange string
	bindAddress            string
	port                   int
	podNetwork, proxy      string
	dns, domain            string
}

// formerNames are former names of flags that are still accepted.
var formerNames = map[string]string{"pod-range": "pod-cidr", "service-range": "service-cidr"}

// add adds the flags to a command, with the help of its --port.
func (f *meshFlags) add(set *pflag.FlagSet, timeout time.Duration, port string) {
	set.StringVar(&f.podRange, "pod-cidr", "", "IPv4 network of the Pods, for example 10.244.0.0/16, or one of each "+
		"family for keel up, comma-separated, IPv4 first; default: one that this machine does not use")
	set.StringVar(&f.serviceRange, "service-cidr", "", "IPv4 network of the Services, or one of each family as for "+
		"the Pods; default: one that this machine does not use, of IPv6 too if --pod-cidr has it")
	set.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		return pflag.NormalizedName(cmp.Or(formerNames[name], name))
	})
	set.StringVar(&f.bindAddress, "bind-address", "0.0.0.0",
		"IPv4 address that the apiserver listens on; Pods reach it only there")
	set.IntVar(&f.port, "port", 0, port)
	set.StringVar(&f.podNetwork, "pod-network", plan.Routes, "how Pods of different nodes reach each other: "+
		"routes or vxlan, or none where others keep the network of Pods; default later: as it is")
	set.StringVar(&f.proxy, "service-proxy", plan.NFTables, "who carries the traffic of Services: nftables for the "+
		"nodeagents, none for another proxy; default later: as it is")
	set.StringVar(&f.dns, "dns", plan.CoreDNS, "who answers for the names of Services and Pods: coredns, which is "+
		"installed, none, or the address of what others install; default later: as it is")
	set.StringVar(&f.domain, "cluster-domain", plan.DefaultDomain, "domain of the names of Services and Pods; "+
		"default later: as it is")
	f.nodeFlags.add(set, timeout)
}

func (f *meshFlags) options(dataDir string, given func(flag string) bool) (mesh.Options, error) {
	options, err := f.nodeFlags.options(dataDir)
	if err != nil {
		return options, err
	}
	options.Port = f.port
	if err := f.keptOptions(&options, given); err != nil {
		return options, err
	}
	if f.port < 0 || f.port > 65535 {
		return options, fmt.Errorf("--port: %d must be between 0 and 65535", f.port)
	}
	if options.BindAddress, err = netip.ParseAddr(f.bindAddress); err != nil || !options.BindAddress.Is4() {
		return options, fmt.Errorf("--bind-address: %q must be an IPv4 address", f.bindAddress)
	}
	if options.BindAddress.IsLoopback() {
		return options, fmt.Errorf("--bind-address: Pods cannot reach %s, a loopback address; "+
			"0.0.0.0 or an address of this machine is allowed", f.bindAddress)
	}
	if options.PodRange, err = plan.ParseRange(f.podRange); err != nil {
		return options, fmt.Errorf("%s: %w", plan.PodRangeFlag, err)
	}
	if options.ServiceRange, err = plan.ParseRange(f.serviceRange); err != nil {
		return options, fmt.Errorf("%s: %w", plan.ServiceRangeFlag, err)
	}
	return options, nil
}

// keptOptions takes over the typed flags; the others keep the recorded value.
func (f *meshFlags) keptOptions(options *mesh.Options, given func(flag string) bool) error {
	if err := plan.CheckPodNetwork(f.podNetwork); err != nil {
		return err
	}
	if err := plan.CheckServiceProxy(f.proxy); err != nil {
		return err
	}
	if err := plan.CheckDNS(f.dns); err != nil {
		return err
	}
	if problems := validation.IsDNS1123Subdomain(f.domain); len(problems) > 0 {
		return fmt.Errorf("--cluster-domain: %q: %s", f.domain, problems[0])
	}
	if given("pod-network") {
		options.PodNetwork = f.podNetwork
	}
	if given("service-proxy") {
		options.ServiceProxy = f.proxy
	}
	if given("dns") {
		options.DNS = f.dns
	}
	if given("cluster-domain") {
		options.Domain = f.domain
	}
	return nil
}

// ownFolder returns the folder of keel's own program.
func ownFolder() (string, error) {
	own, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("finding keel's own folder: %w", err)
	}
	return filepath.Dir(own), nil
}

// fillFolders looks beside keel for the folders that no flag names.
func fillFolders(options *mesh.Options) error {
	own, err := ownFolder()
	if err != nil {
		return err
	}
	if options.Programs == "" {
		options.Programs = own
	}
	if options.Images == "" {
		options.Images = filepath.Join(own, "images")
	}
	for _, folder := range []*string{&options.Programs, &options.Images} {
		if *folder, err = filepath.Abs(*folder); err != nil {
			return fmt.Errorf("making %s absolute: %w", *folder, err)
		}
	}
	return nil
}
