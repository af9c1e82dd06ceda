package app

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"keelson.dev/kit/daemon"
	"keelson.dev/kit/keptport"
	"keelson.dev/services/nodeagent/internal/conntrack"
	"keelson.dev/services/nodeagent/internal/cpupin"
	"keelson.dev/services/nodeagent/internal/credentialprovider"
	"keelson.dev/services/nodeagent/internal/gc"
	"keelson.dev/services/nodeagent/internal/imagepull"
	"keelson.dev/services/nodeagent/internal/memory"
	"keelson.dev/services/nodeagent/internal/nodecertificates"
	"keelson.dev/services/nodeagent/internal/podnetwork"
	"keelson.dev/services/nodeagent/internal/pressure"
	"keelson.dev/services/nodeagent/internal/reserved"
	"keelson.dev/services/nodeagent/internal/review"
)

// name is the name of the daemon.
const name = "nodeagent"

// kubernetesVersion is the version of the Kubernetes API that this node speaks, which the Node reports with the
// agent's own behind it.
const kubernetesVersion = "v1.37.2"

// Config is what a nodeagent needs; Options documents each field.
type Config struct {
	*daemon.Environment // may be nil
	// REST is the connection to the API if the agent maintains no certificate of its own; else Kubeconfig names the
	// file with the connection.
	REST         *rest.Config
	Kubeconfig   string
	Certificates nodecertificates.Settings

	NodeName                        string
	NodeIPs                         []string
	RootDir, LogsDir, AddressesDir  string
	PodManifestPath                 string
	RuntimeEndpoint                 string
	CgroupRoot, CgroupDriver        string
	PidsLimit, MaxPods              int64
	Reserved                        reserved.Settings
	Memory                          memory.Settings
	CPUs                            cpupin.Settings
	Pressure                        pressure.Settings
	PodCIDR                         string
	PodNetwork                      podnetwork.Settings
	Labels                          map[string]string
	Taints                          []corev1.Taint
	BindAddress                     string
	Port                            int
	CertFile, KeyFile, ClientCAFile string
	Reviews                         review.Settings
	SystemLogs                      bool
	ClusterDNS                      []string
	ClusterDomain                   string
	ResolvConf                      string
	AllowedSysctls                  []string
	SeccompRoot                     string
	SeccompDefault                  bool
	LogMaxSize                      int64
	LogMaxFiles                     int
	ImagePulls                      imagepull.Settings
	ImageGC                         gc.Settings
	ImageCredentials                credentialprovider.Settings
	ServiceProxy, ServiceTable      string
	ServiceHealth                   string
	ServiceRanges                   []string
	Conntrack                       conntrack.Settings
	KeptPorts                       []keptport.Port

	// Simulated creates a node of which only the API side is real: containers, mounts and cgroups exist in memory. It
	// uses only RootDir, LogsDir and the folder of certificates on disk.
	Simulated bool
}
