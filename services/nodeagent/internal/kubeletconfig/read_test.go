package kubeletconfig

import (
	"fmt"
	"strings"
	"testing"
)

const head = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"

const hasNothing = ": the nodeagent has nothing for this field; docs/reference/kubelet-configuration.md lists those " +
	"that it has"

func read(body string) string {
	settings, err := Read([]byte(head + body))
	if err != nil {
		return err.Error()
	}
	var lines []string
	for _, s := range settings {
		lines = append(lines, fmt.Sprintf("%s --%s=%s", s.Field, s.Flag, s.Value))
	}
	return strings.Join(lines, "\n")
}

func TestRead(t *testing.T) {
	for _, row := range []struct{ name, body, want string }{
		{"nothing", "", ""},
		{"a number", "maxPods: 50", "maxPods --max-pods=50"},
		{"ordered by field", "port: 10251\nmaxPods: 50", "maxPods --max-pods=50\nport --port=10251"},
		{"a pointer to zero", "imageGCLowThresholdPercent: 0", "imageGCLowThresholdPercent --image-gc-low-threshold=0"},
		{"a pointer to nothing", `resolvConf: ""`, "resolvConf --resolv-conf="},
		{"what stands for the default", "maxPods: 0\nsyncFrequency: 0s\nmemorySwap: {}\nstaticPodURL: ''\n" +
			"clusterDNS: []\nlogging: {flushFrequency: 0, verbosity: 0}\ncontainerRuntimeEndpoint: ''", ""},
		{"a list", "clusterDNS: [10.0.0.10, 'fd00::10']", "clusterDNS --cluster-dns=10.0.0.10,fd00::10"},
		{"taints", "registerWithTaints: [{key: a, value: b, effect: NoSchedule}, {key: c, effect: NoExecute}]",
			"registerWithTaints --register-with-taints=a=b:NoSchedule,c:NoExecute"},
		{"bytes", "containerLogMaxSize: 10Mi", "containerLogMaxSize --container-log-max-size=10485760"},
		{"no bytes", "containerLogMaxSize: ten", `containerLogMaxSize: "ten" must be an amount of bytes, like 10Mi`},
		{"deep", "authentication: {x509: {clientCAFile: /ca.crt}, anonymous: {enabled: false}}",
			"authentication.x509.clientCAFile --client-ca-file=/ca.crt"},
		{"as it is anyway", "cgroupsPerQOS: true\nnodeLeaseDurationSeconds: 40", ""},
		{"not as it is", "cgroupsPerQOS: false", "cgroupsPerQOS: false is not supported, only true is"},
		{"not as it is, deep", "authentication: {anonymous: {enabled: true}}",
			"authentication.anonymous.enabled: true is not supported, only false is"},
		{"who may", "authentication: {webhook: {cacheTTL: 0s}}\nauthorization: {mode: Webhook}", ""},
		{"everybody may", "authorization: {mode: AlwaysAllow}",
			"authorization.mode: AlwaysAllow is not supported, only Webhook is"},
		{"not here", "hairpinMode: none\nsyncFrequency: 1m",
			"hairpinMode" + hasNothing + "\nsyncFrequency" + hasNothing},
		{"thresholds", "evictionHard: {nodefs.available: 10%, memory.available: 1Gi}",
			"evictionHard --eviction-hard=memory.available<1Gi,nodefs.available<10%"},
		{"amounts", "systemReserved: {memory: 1Gi, cpu: 100m}", "systemReserved --system-reserved=cpu=100m,memory=1Gi"},
		{"nowhere", "maxPod: 50", "maxPod: KubeletConfiguration has no such field, or it stands twice"},
		{"nowhere, deep", "authentication: {x509: {caFile: a}}",
			"authentication.x509.caFile: KubeletConfiguration has no such field, or it stands twice"},
		{"another case", "maxpods: 50", "maxpods: KubeletConfiguration has no such field, or it stands twice"},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := read(row.body); got != row.want {
				t.Errorf("got\n%s\nwant\n%s", got, row.want)
			}
		})
	}
}

// The error about an unusable file names the problem on one line.
func TestReadNoConfiguration(t *testing.T) {
	for _, row := range []struct{ file, want string }{
		{"", "apiVersion: "},
		{"kind: KubeletConfiguration\napiVersion: kubelet.config.k8s.io/v1", "apiVersion: "},
		{"kind: KubeSchedulerConfiguration\napiVersion: kubelet.config.k8s.io/v1beta1", "kind: "},
		{"{", "is no YAML: "},
		{head + "maxPods: 1\nmaxPods: 2", "is no YAML: "},
		{head + "maxPods: many", "is no KubeletConfiguration: "},
	} {
		_, err := Read([]byte(row.file))
		if err == nil || !strings.HasPrefix(err.Error(), row.want) {
			t.Errorf("%q: %v, want %s", row.file, err, row.want)
		}
	}
}
