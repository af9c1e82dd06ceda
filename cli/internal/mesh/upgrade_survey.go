package mesh

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"keelson.dev/cli/internal/upgrade"
	"keelson.dev/kit/daemon"
)

const (
	// surveyLimit bounds how long a mesh may take to say what it runs, askLimit how long one apiserver may.
	surveyLimit = 20 * time.Second
	askLimit    = 5 * time.Second
)

// apiSurroundings asks the API.
type apiSurroundings struct{ *Mesh }

func (s *apiSurroundings) awaitNode(ctx context.Context, version string) error {
	return s.awaitNodeOf(ctx, version)
}

func (s *apiSurroundings) survey(ctx context.Context) (found survey, err error) {
	ctx, cancel := context.WithTimeout(ctx, surveyLimit)
	defer cancel()
	config, err := s.clientConfig()
	if err != nil {
		return found, err
	}
	config.Timeout = askLimit
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return found, fmt.Errorf("building a client: %w", err)
	}
	names := map[string]string{}
	if !s.State.Worker() {
		if found.fleet.Agents, names, err = agents(ctx, client); err != nil {
			return found, err
		}
	}
	servers, err := apiservers(ctx, client, config)
	if err != nil {
		return found, err
	}
	for _, server := range servers {
		version := upgrade.ParseVersion(server.version)
		if !s.State.Worker() && server.host == s.State.Advertise {
			found.fleet.Own = &version
			continue
		}
		found.fleet.APIServers = append(found.fleet.APIServers,
			upgrade.Peer{Machine: cmp.Or(names[server.host], server.host), Version: version})
	}
	if s.State.Worker() {
		return found, nil
	}
	if found.fleet.Own == nil {
		return found, fmt.Errorf("the apiserver of this machine, %s, is not among those that the Service kubernetes "+
			"leads to", s.State.Advertise)
	}
	found.members, err = s.members(ctx, servers, names)
	return found, err
}

// agents returns the agents of all nodes, in the order of their names, and the names of the nodes by their addresses.
func agents(ctx context.Context, client kubernetes.Interface) (agents []upgrade.Peer, names map[string]string,
	err error) {
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, nil, fmt.Errorf("listing the nodes: %w", err)
	}
	names = map[string]string{}
	for _, node := range nodes.Items {
		own, _ := daemon.OwnVersion(node.Status.NodeInfo.KubeletVersion)
		agents = append(agents, upgrade.Peer{Machine: node.Name, Version: upgrade.ParseVersion(own)})
		for _, address := range node.Status.Addresses {
			if address.Type == corev1.NodeInternalIP {
				names[address.Address] = node.Name
			}
		}
	}
	slices.SortFunc(agents, func(a, b upgrade.Peer) int { return cmp.Compare(a.Machine, b.Machine) })
	return agents, names, nil
}

// server is an apiserver of the mesh.
type server struct {
	// host is its address without the port.
	host, version string
	// fault says why it is not ready; empty if it is.
	fault string
}

// apiservers asks each apiserver that the Service kubernetes leads to, in the order of their addresses.
func apiservers(ctx context.Context, client kubernetes.Interface, config *rest.Config) ([]server, error) {
	found, err := client.DiscoveryV1().EndpointSlices(metav1.NamespaceDefault).List(ctx,
		metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=kubernetes"})
	if err != nil {
		return nil, fmt.Errorf("asking for the apiservers: %w", err)
	}
	var servers []server
	for _, address := range addressesOf(found.Items) {
		one := server{host: address.Addr().String()}
		one.version, err = askServer(ctx, config, address)
		if err != nil {
			one.fault = err.Error()
		}
		servers = append(servers, one)
	}
	return servers, nil
}

// addressesOf returns the addresses in EndpointSlices, in order.
func addressesOf(all []discoveryv1.EndpointSlice) (addresses []netip.AddrPort) {
	for _, slice := range all {
		for _, port := range slice.Ports {
			for _, endpoint := range slice.Endpoints {
				for _, host := range endpoint.Addresses {
					address, err := netip.ParseAddr(host)
					if err == nil && port.Port != nil {
						addresses = append(addresses, netip.AddrPortFrom(address, uint16(*port.Port)))
					}
				}
			}
		}
	}
	slices.SortFunc(addresses, netip.AddrPort.Compare)
	return slices.Compact(addresses)
}

// askServer returns the version of an apiserver, and an error unless it is ready.
func askServer(ctx context.Context, config *rest.Config, address netip.AddrPort) (version string, err error) {
	there := rest.CopyConfig(config)
	there.Host = "https://" + net.JoinHostPort(address.Addr().String(), strconv.Itoa(int(address.Port())))
	client, err := kubernetes.NewForConfig(there)
	if err != nil {
		return "", fmt.Errorf("building a client: %w", err)
	}
	asked := client.Discovery().RESTClient()
	said, err := asked.Get().AbsPath("/version").DoRaw(ctx)
	if err != nil {
		return "", err
	}
	var info apiversion.Info
	if err := json.Unmarshal(said, &info); err != nil {
		return "", fmt.Errorf("reading its version: %w", err)
	}
	version, _ = daemon.OwnVersion(info.GitVersion)
	return version, asked.Get().AbsPath("/readyz").Do(ctx).Error()
}

// members returns which machines have the store, and whether the apiservers there are ready.
func (s *apiSurroundings) members(ctx context.Context, servers []server, names map[string]string,
) (members []upgrade.Member, err error) {
	if !s.State.SharesStore() {
		return nil, nil // its store is its own
	}
	all, err := s.storeMembers(ctx)
	if err != nil {
		return nil, err
	}
	for _, one := range all {
		host, _, err := net.SplitHostPort(one.Address)
		if err != nil {
			host = one.Address // of a store that is alone
		}
		member := upgrade.Member{Machine: cmp.Or(names[host], host), Counts: one.Counts, Self: one.Self,
			Fault: "its apiserver is not running"}
		if i := slices.IndexFunc(servers, func(s server) bool { return s.host == host }); i >= 0 {
			member.Fault = servers[i].fault
		}
		members = append(members, member)
	}
	return members, nil
}
