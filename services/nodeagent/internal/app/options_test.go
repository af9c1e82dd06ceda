package app

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// parse returns the error about the flags, "" if they are valid.
func parse(args ...string) string {
	o := newOptions()
	fs := pflag.NewFlagSet("nodeagent", pflag.ContinueOnError)
	o.AddFlags(fs)
	if err := fs.Parse(append([]string{"--node-name=n", "--port=0"}, args...)); err != nil {
		return err.Error()
	}
	if err := o.Validate(); err != nil {
		return err.Error()
	}
	return ""
}

// A wrong flag gives one sentence that begins with its name.
func TestValidate(t *testing.T) {
	for _, r := range []struct{ args, want string }{
		{"", ""},
		{"--node-ip=10.0.0.1,fd00::1 --pod-cidr=10.1.0.0/24 --cluster-dns=10.96.0.10 " +
			"--register-with-taints=a=b:NoSchedule,c:NoExecute --node-labels=x=y", ""},
		{"--node-name=No_Name", "--node-name: "},
		{"--node-ip=nowhere", "--node-ip: "},
		{"--root-dir=here", "--root-dir: "},
		{"--pod-logs-dir=here", "--pod-logs-dir: "},
		{"--pod-addresses-dir=here", "--pod-addresses-dir: "},
		{"--pod-manifest-path=here", "--pod-manifest-path: "},
		{"--pod-manifest-path=/etc/manifests", ""},
		{"--container-runtime-endpoint=tcp://x", "--container-runtime-endpoint: "},
		{"--container-runtime-endpoint=unix://relative", "--container-runtime-endpoint: "},
		{"--cgroup-root=/", "--cgroup-root: "},
		{"--cgroup-root=/a/../b", "--cgroup-root: "},
		{"--cgroup-driver=mine", "--cgroup-driver: "},
		{"--memory-swap-behavior=Unlimited", "--memory-swap-behavior: "},
		{"--memory-reservation-policy=TieredReservation", ""},
		{"--memory-reservation-policy=TieredReservation --cgroup-root=/a/b", "--memory-reservation-policy: "},
		{"--max-pods=0", "--max-pods: "},
		{"--pod-max-pids=-2", "--pod-max-pids: "},
		{"--pod-max-pids=-1", ""},
		{"--pod-max-pids=0", ""},
		{"--port=70000", "--port: "},
		{"--port=10250 --tls-cert-file=/c --tls-private-key-file=/k", "--client-ca-file: the node API needs it; "},
		{"--port=10250 --client-ca-file=/ca", "--tls-cert-file: the node API needs it, or --rotate-server-"},
		{"--port=10250 --client-ca-file=/ca --tls-cert-file=/c", "--tls-cert-file: needs --tls-private-key-file, and"},
		{"--port=10250 --client-ca-file=/ca --tls-private-key-file=/k", "--tls-cert-file: needs --tls-private-key"},
		{"--port=10250 --client-ca-file=/ca --tls-cert-file=/c --tls-private-key-file=/k", ""},
		{"--port=10250 --client-ca-file=/ca --rotate-server-certificates", ""},
		{"--port=10250 --rotate-server-certificates", "--client-ca-file: "},
		{"--port=10250 --client-ca-file=/ca --rotate-server-certificates --tls-cert-file=/c --tls-private-key-file=/k",
			""},
		{"--port=10250 --client-ca-file=/ca --rotate-server-certificates --tls-cert-file=/c",
			"--tls-cert-file: needs --tls-private-key-file"},
		{"--port=10250 --client-ca-file=/ca --rotate-server-certificates --cert-dir=here", "--cert-dir: "},
		{"--rotate-server-certificates", ""}, // without a node API it does nothing
		{"--bind-address=all", "--bind-address: "},
		{"--authentication-token-webhook-cache-ttl=0s --authorization-webhook-cache-authorized-ttl=0s " +
			"--authorization-webhook-cache-unauthorized-ttl=0s", ""},
		{"--authentication-token-webhook-cache-ttl=-1ns",
			"--authentication-token-webhook-cache-ttl: -1ns must be at least 0s"},
		{"--authorization-webhook-cache-authorized-ttl=-1ns", "--authorization-webhook-cache-authorized-ttl: "},
		{"--authorization-webhook-cache-unauthorized-ttl=-1ns", "--authorization-webhook-cache-unauthorized-ttl: "},
		{"--pod-cidr=10.1.0.0", "--pod-cidr: "},
		{"--pod-network=routes --cluster-cidr=10.244.0.0/16", ""},
		{"--pod-network=vxlan --cluster-cidr=10.244.0.0/16,fd00::/48 --host-port-table= --pod-bridge=fourteen-chars",
			""},
		{"--pod-network=flannel", `--pod-network: "flannel" must be routes, vxlan or none`},
		{"--pod-network=routes", "--cluster-cidr: --pod-network=routes needs one or two ranges"},
		{"--pod-network=routes --cluster-cidr=10.244.0.1/16", "--cluster-cidr: "},
		{"--pod-network=routes --cluster-cidr=10.0.0.0/16,10.1.0.0/16,fd00::/48", "--cluster-cidr: "},
		{"--pod-network=routes --cluster-cidr=10.244.0.0/16 --cni-config-dir=here", "--cni-config-dir: "},
		{"--pod-network=routes --cluster-cidr=10.244.0.0/16 --pod-bridge=fifteen-chars-x", "--pod-bridge: "},
		{"--pod-network=vxlan --cluster-cidr=10.244.0.0/16 --vxlan-id=16777215", ""},
		{"--pod-network=vxlan --cluster-cidr=10.244.0.0/16 --vxlan-id=16777216",
			"--vxlan-id: 16777216 must be from 1 to 16777215"},
		{"--pod-network=vxlan --cluster-cidr=10.244.0.0/16 --vxlan-id=1", ""},
		{"--pod-network=vxlan --cluster-cidr=10.244.0.0/16 --vxlan-id=0", "--vxlan-id: 0 must be from 1 to 16777215"},
		{"--cluster-dns=dns", "--cluster-dns: "},
		{"--cluster-domain=Corp_", "--cluster-domain: "},
		{"--cluster-domain=kube.local", ""},
		{"--cluster-domain=", ""},
		{"--service-proxy=none", ""},
		{"--service-proxy=iptables", "--service-proxy: "},
		{"--service-proxy-health-address=", ""},
		{"--service-proxy-health-address=:65535", ""},
		{"--service-proxy-health-address=[2001:db8::1]:1", ""},
		{"--service-proxy-health-address=:65536", "--service-proxy-health-address: "},
		{"--service-proxy-health-address=:0", "--service-proxy-health-address: "},
		{"--service-proxy-health-address=10256",
			`--service-proxy-health-address: "10256" must be [IP]:PORT with a port from 1 to 65535, or empty`},
		{"--service-proxy-health-address=lb:10256", "--service-proxy-health-address: "},
		{"--service-cluster-ip-range=10.96.0.0/16,fd00:96::/112", ""},
		{"--service-cluster-ip-range=10.96.0.1/16",
			`--service-cluster-ip-range: "10.96.0.1/16" must be a network without host bits, for example 10.96.0.0/16`},
		{"--kept-ports=0.0.0.0:6443/tcp=apiserver,127.0.0.1:2381/tcp=etcd", ""},
		{"--kept-ports=6443/tcp=apiserver,6443", `--kept-ports: "6443": KEEPER must be one word in [IP:]PORT[-PORT]/`},
		{"--service-proxy-table=" + strings.Repeat("a", 128), ""},
		{"--service-proxy-table=" + strings.Repeat("a", 129), "--service-proxy-table: "},
		{"--service-proxy-table=a/b", "--service-proxy-table: "},
		{"--register-with-taints=a:Never", "--register-with-taints: "},
		{"--container-log-max-files=1", "--container-log-max-files: "},
		{"--image-gc-high-threshold=70 --image-gc-low-threshold=80", "--image-gc-high-threshold: "},
		{"--image-gc-high-threshold=80 --image-gc-low-threshold=80", "--image-gc-high-threshold: "},
		{"--image-gc-high-threshold=100 --image-gc-low-threshold=0", ""},
		{"--image-gc-high-threshold=101", "--image-gc-high-threshold: "},
		{"--image-gc-low-threshold=-1", "--image-gc-high-threshold: "},
		{"--minimum-image-ttl-duration=1ns", ""},
		{"--minimum-image-ttl-duration=0s", "--minimum-image-ttl-duration: 0s must be above 0s"},
		{"--maximum-image-ttl-duration=0s", ""},
		{"--maximum-image-ttl-duration=-1ns", "--maximum-image-ttl-duration: -1ns must be at least 0s"},
		{"--maximum-image-ttl-duration=120s",
			"--maximum-image-ttl-duration: 2m0s must be above --minimum-image-ttl-duration (2m0s), or 0s"},
		{"--maximum-image-ttl-duration=121s", ""},
		{"--image-credential-provider-bin-dir=/bin",
			"--image-credential-provider-bin-dir: needs --image-credential-provider-config"},
		{"--image-credential-provider-config=/nowhere --image-credential-provider-bin-dir=/bin",
			"--image-credential-provider-config: stat /nowhere: no such file or directory"},
		{"--max-parallel-image-pulls=0", "--max-parallel-image-pulls: 0 must be at least 1"},
		{"--system-reserved=cpu=200m,memory=1Gi,pid=1000 --kube-reserved=cpu=0,ephemeral-storage=1Gi", ""},
		{"--system-reserved=pods=3",
			`--system-reserved: "pods" must be one of [cpu memory ephemeral-storage pid]`},
		{"--kube-reserved=memory=much", `--kube-reserved: memory="much" must be a quantity of at least 0`},
		{"--kube-reserved=memory=-1Gi", `--kube-reserved: memory="-1Gi" must be a quantity of at least 0`},
		{"--enforce-node-allocatable=none", ""},
		{"--enforce-node-allocatable=pods,none", "--enforce-node-allocatable: none must stand alone"},
		{"--enforce-node-allocatable=kube-reserved",
			`--enforce-node-allocatable: "kube-reserved" must be pods or none`},
		{"--eviction-hard=memory.available<500Mi,nodefs.available<1.5%,imagefs.inodesFree<0%,pid.available<100", ""},
		{"--eviction-hard=", ""},
		{"--eviction-hard=memory.available=1Gi",
			`--eviction-hard: "memory.available=1Gi" must have the form SIGNAL<VALUE`},
		{"--eviction-hard=cpu.available<1", `--eviction-hard: "cpu.available" is no signal; there are [memory.`},
		{"--eviction-hard=allocatableMemory.available<1Gi",
			`--eviction-hard: "allocatableMemory.available" is no signal`},
		{"--eviction-hard=memory.available<-1Gi", `--eviction-hard: memory.available: "-1Gi" must be a quantity of`},
		{"--eviction-hard=nodefs.available<100%", ""},
		{"--eviction-hard=nodefs.available<101%", `--eviction-hard: nodefs.available: "101%" must be from 0% to 100%`},
		{"--eviction-hard=nodefs.available<-1%", `--eviction-hard: nodefs.available: "-1%" must be from 0% to 100%`},
		{"--eviction-hard=nodefs.available<NaN%", `--eviction-hard: nodefs.available: "NaN%" must be from 0% to 100%`},
		{"--eviction-soft=memory.available<1Gi --eviction-soft-grace-period=memory.available=90s", ""},
		{"--eviction-soft=memory.available<1Gi",
			"--eviction-soft: memory.available needs a period in --eviction-soft-grace-period"},
		{"--eviction-soft-grace-period=memory.available=90s",
			"--eviction-soft-grace-period: memory.available has no threshold in --eviction-soft"},
		{"--eviction-soft=memory.available<1Gi --eviction-soft-grace-period=memory.available=-1s",
			`--eviction-soft-grace-period: memory.available: "-1s" must be a duration of at least 0`},
		{"--eviction-minimum-reclaim=memory.available=0Mi,nodefs.available=5%", ""},
		{"--eviction-minimum-reclaim=memory.available<1Mi", "--eviction-minimum-reclaim: "},
		{"--eviction-max-pod-grace-period=-1", "--eviction-max-pod-grace-period: -1 must be at least 0"},
		{"--eviction-pressure-transition-period=-1s", "--eviction-pressure-transition-period: -1s must be at least 0s"},
		{"--cpu-manager-policy=dynamic", `--cpu-manager-policy: "dynamic" must be none or static`},
		{"--cpu-manager-policy=static --cpu-manager-reconcile-period=0s",
			"--cpu-manager-reconcile-period: 0s must be more than 0"},
		{"--cpu-manager-reconcile-period=0s --kubeconfig=/no/such/file", "--kubeconfig: "},
		{"--reserved-cpus=0-", `--reserved-cpus: "0-" must be a list of cpus and ranges of them, like 0-1,4`},
		{"--kubeconfig=/no/such/file", "--kubeconfig: "},
		{"--kubeconfig=/no/such/file --rotate-certificates", "--kubeconfig: "},
		{"--kubeconfig=/no/such/file --bootstrap-kubeconfig=/nor/this", ""},
		{"--bootstrap-kubeconfig=/b", "--bootstrap-kubeconfig: --kubeconfig must name the file that is written"},
		{"--rotate-certificates", "--rotate-certificates: --kubeconfig must name the file with the node's client cert"},
		{"--cert-dir=here", `--cert-dir: "here" must be an absolute path`},
	} {
		got := parse(strings.Fields(r.args)...)
		if r.want == "" && got != "" || r.want != "" && (!strings.HasPrefix(got, r.want) ||
			strings.Contains(got, "\n")) {
			t.Errorf("%s: %q, want one line that begins with %q", r.args, got, r.want)
		}
	}
}

// A Pod that forks without end must not use all processes of the node, even if no limit was set.
func TestProcessesAreLimitedByDefault(t *testing.T) {
	if got := Defaults("n").PidsLimit; got != 4096 {
		t.Errorf("a Pod may have %d processes by default, want 4096", got)
	}
	fs := pflag.NewFlagSet("nodeagent", pflag.ContinueOnError)
	newOptions().AddFlags(fs)
	if usage := fs.FlagUsages(); !strings.Contains(usage, "(default 4096)") {
		t.Errorf("the flag's help does not say the default:\n%s", usage)
	}
}
