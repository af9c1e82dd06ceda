package app

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"keelson.dev/services/nodeagent/internal/cgroup"
	"keelson.dev/services/nodeagent/internal/cpupin"
	"keelson.dev/services/nodeagent/internal/kubeletconfig"
	"keelson.dev/services/nodeagent/internal/review"
)

const fileHead = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"

// filled returns the options from flags and a kubelet's file, and the error; FILE is the file.
func filled(t *testing.T, body string, args ...string) (*options, string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubelet.yaml")
	if err := os.WriteFile(file, []byte(fileHead+body), 0o600); err != nil {
		t.Fatal(err)
	}
	o := newOptions()
	fs := pflag.NewFlagSet("nodeagent", pflag.ContinueOnError)
	o.AddFlags(fs)
	if err := fs.Parse(append([]string{"--node-name=n", "--port=0", "--kubelet-config=" + file}, args...)); err != nil {
		t.Fatal(err)
	}
	err := o.Validate()
	if err == nil {
		return o, ""
	}
	return o, strings.ReplaceAll(err.Error(), file, "FILE")
}

// everything sets each field.
const everything = `
address: 127.0.0.1
allowedUnsafeSysctls: [net.core.somaxconn]
authentication: {x509: {clientCAFile: /ca}, webhook: {enabled: false, cacheTTL: 1m}}
authorization: {webhook: {cacheAuthorizedTTL: 2m, cacheUnauthorizedTTL: 3m}}
cgroupDriver: systemd
cgroupRoot: /pods
clusterDNS: [10.0.0.10]
clusterDomain: example.org
containerLogMaxFiles: 3
containerLogMaxSize: 1Mi
containerRuntimeEndpoint: unix:///c.sock
cpuManagerPolicy: static
cpuManagerReconcilePeriod: 5s
enableSystemLogHandler: false
enforceNodeAllocatable: [none]
evictionHard: {memory.available: 1Gi}
evictionMaxPodGracePeriod: 7
evictionMinimumReclaim: {memory.available: 1Mi}
evictionPressureTransitionPeriod: 7s
evictionSoft: {memory.available: 20%}
evictionSoftGracePeriod: {memory.available: 90s}
imageGCHighThresholdPercent: 70
imageGCLowThresholdPercent: 0
imageMaximumGCAge: 5m
imageMinimumGCAge: 3m
imagePullCredentialsVerificationPolicy: NeverVerifyAllowlistedImages
kubeReserved: {cpu: 100m}
maxParallelImagePulls: 4
maxPods: 7
podCIDR: 10.1.0.0/24
podLogsDir: /logs
podPidsLimit: 9
port: 1
preloadedImagesVerificationAllowlist: [a/b, c/*]
registerWithTaints: [{key: a, effect: NoExecute}]
reservedSystemCPUs: 0-1,3
resolvConf: ""
seccompDefault: true
rotateCertificates: true
serializeImagePulls: false
serverTLSBootstrap: true
systemReserved: {memory: 1Gi, cpu: 200m}
tlsCertFile: /cert
tlsPrivateKeyFile: /key
`

// Every flag of a field exists, accepts the field's value, and wins over it.
func TestKubeletConfig(t *testing.T) {
	o, problem := filled(t, everything, "--max-pods=8", "--kubeconfig=/k", "--bootstrap-kubeconfig=/b")
	if problem != "" {
		t.Fatal(problem)
	}
	c := o.config
	rules, err := c.Pressure.Rules()
	if err != nil || len(rules.Thresholds) != 2 {
		t.Fatalf("the thresholds are %+v, %v", rules.Thresholds, err)
	}
	reserved, err := c.Reserved.Amounts()
	if err != nil {
		t.Fatal(err)
	}
	for name, ok := range map[string]bool{
		"address": c.BindAddress == "127.0.0.1", "sysctls": c.AllowedSysctls[0] == "net.core.somaxconn",
		"CA": c.ClientCAFile == "/ca", "driver": c.CgroupDriver == "systemd", "root": c.CgroupRoot == "/pods",
		"DNS": c.ClusterDNS[0] == "10.0.0.10", "domain": c.ClusterDomain == "example.org",
		"log files": c.LogMaxFiles == 3, "log size": c.LogMaxSize == 1<<20,
		"runtime": c.RuntimeEndpoint == "unix:///c.sock", "high": c.ImageGC.HighPercent == 70,
		"low": c.ImageGC.LowPercent == 0, "max Pods of the flag": c.MaxPods == 8, "range": c.PodCIDR == "10.1.0.0/24",
		"most age": c.ImageGC.MaxAge == 5*time.Minute, "least age": c.ImageGC.MinAge == 3*time.Minute,
		"parallel pulls": *c.ImagePulls.MaxParallel == 4, "serial pulls": !*c.ImagePulls.Serialize,
		"allowed images": len(c.ImagePulls.Allowlist) == 2 && c.ImagePulls.Allowlist[1] == "c/*",
		"logs":           c.LogsDir == "/logs", "PIDs": c.PidsLimit == 9, "port of the flag": c.Port == 0,
		"resolv.conf": c.ResolvConf == "", "taint": len(c.Taints) == 1 && c.Taints[0].Key == "a",
		"hard": rules.Thresholds[0].Least.Of(0) == 1<<30, "soft": rules.Thresholds[1].Least.Percent == 20,
		"soft's grace": rules.Thresholds[1].Grace == 90*time.Second, "nobody is held": !c.Reserved.HoldsPods(),
		"reclaim": rules.Thresholds[1].Reclaim.Of(0) == 1<<20, "transition": rules.Transition == 7*time.Second,
		"Pods' grace": rules.MaxPodGrace == 7*time.Second, "reserved": reserved.Cpu().MilliValue() == 3000 &&
			reserved.Memory().Value() == 1<<30,
		"reviews": c.Reviews == review.Settings{TokenTTL: time.Minute, AllowedTTL: 2 * time.Minute,
			DeniedTTL: 3 * time.Minute}, "the machine's logs": !c.SystemLogs,
		"CPUs":    c.CPUs == cpupin.Settings{Policy: "static", Every: 5 * time.Second},
		"named":   c.Reserved.Named().String() == "0-1,3",
		"seccomp": c.SeccompDefault, "cert": c.CertFile == "/cert", "key": c.KeyFile == "/key",
		"renewal": c.Certificates.Rotate, "serving certificate": c.Certificates.RotateServer,
	} {
		if !ok {
			t.Errorf("%s: not as in the file; the configuration is %+v", name, c)
		}
	}
}

const hasNothing = ": the nodeagent has nothing for this field; docs/reference/kubelet-configuration.md lists those " +
	"that it has"

// An error in a file names the file and the field.
func TestKubeletConfigRefused(t *testing.T) {
	for _, row := range []struct{ body, want string }{
		{"maxPods: -1", "--kubelet-config: FILE: maxPods: --max-pods: -1 must be at least 1"},
		{"syncFrequency: 1m\nhairpinMode: none", "--kubelet-config: FILE: hairpinMode" + hasNothing +
			"\n--kubelet-config: FILE: syncFrequency" + hasNothing},
		{"maxParallelImagePulls: 0",
			"--kubelet-config: FILE: maxParallelImagePulls: --max-parallel-image-pulls: 0 must be at least 1"},
		{"imageMaximumGCAge: 2m", "--kubelet-config: FILE: imageMaximumGCAge: --maximum-image-ttl-duration: " +
			"2m0s must be above --minimum-image-ttl-duration (2m0s), or 0s"},
		{"maxPods: many", "--kubelet-config: FILE: is no KubeletConfiguration: "},
	} {
		if _, got := filled(t, row.body); !strings.HasPrefix(got, row.want) {
			t.Errorf("%s: %q, want %q", row.body, got, row.want)
		}
	}
	if _, got := filled(t, "maxPods: -1", "--max-pods=0"); got != "--max-pods: 0 must be at least 1" {
		t.Errorf("the flag that wins is wrong, and it says %q", got)
	}
	if got := parse("--kubelet-config=/nowhere"); got != "--kubelet-config: open /nowhere: no such file or directory" {
		t.Errorf("a file that is not there: %q", got)
	}
}

// The current configuration is shown as a file would have it, regardless of its origin, with the flags that win
// over it.
func TestInForce(t *testing.T) {
	o, problem := filled(t, everything, "--max-pods=8", "--kubeconfig=/k", "--bootstrap-kubeconfig=/b")
	if problem != "" {
		t.Fatal(problem)
	}
	config, err := o.config.inForce(cgroup.Cgroupfs)
	if err != nil {
		t.Fatal(err)
	}
	shown, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	was, err := kubeletconfig.Read([]byte(fileHead + everything))
	if err != nil {
		t.Fatal(err)
	}
	is, err := kubeletconfig.Read(shown)
	if err != nil {
		t.Fatalf("what is shown cannot be read: %v: %s", err, shown)
	}
	for _, s := range was {
		switch s.Field {
		case "maxPods":
			s.Value = "8"
		case "port":
			continue // 0 means the default
		}
		if !slices.Contains(is, s) {
			t.Errorf("of %v is shown %s", s, shown)
		}
	}
	plain, err := Defaults("n").inForce(cgroup.Systemd)
	if err != nil || plain.CgroupDriver != "systemd" || !*plain.SerializeImagePulls ||
		*plain.MaxParallelImagePulls != 1 || plain.CPUManagerPolicy != "none" ||
		plain.EvictionHard["memory.available"] != "100Mi" {
		t.Errorf("by default %+v, %v", plain, err)
	}
}
