package kubeletconfig

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// flags maps the paths of fields to the flags that they set.
var flags = map[string]string{
	"address":                                    "bind-address",
	"allowedUnsafeSysctls":                       "allowed-unsafe-sysctls",
	"authentication.webhook.cacheTTL":            "authentication-token-webhook-cache-ttl",
	"authentication.webhook.enabled":             "authentication-token-webhook",
	"authentication.x509.clientCAFile":           "client-ca-file",
	"authorization.webhook.cacheAuthorizedTTL":   "authorization-webhook-cache-authorized-ttl",
	"authorization.webhook.cacheUnauthorizedTTL": "authorization-webhook-cache-unauthorized-ttl",
	"cgroupDriver":                               "cgroup-driver",
	"cgroupRoot":                                 "cgroup-root",
	"clusterDNS":                                 "cluster-dns",
	"clusterDomain":                              "cluster-domain",
	"containerLogMaxFiles":                       "container-log-max-files",
	"containerLogMaxSize":                        "container-log-max-size",
	"containerRuntimeEndpoint":                   "container-runtime-endpoint",
	"cpuManagerPolicy":                           "cpu-manager-policy",
	"cpuManagerReconcilePeriod":                  "cpu-manager-reconcile-period",
	"enableSystemLogHandler":                     "enable-system-log-handler",
	"enforceNodeAllocatable":                     "enforce-node-allocatable",
	"evictionHard":                               "eviction-hard",
	"evictionMaxPodGracePeriod":                  "eviction-max-pod-grace-period",
	"evictionMinimumReclaim":                     "eviction-minimum-reclaim",
	"evictionPressureTransitionPeriod":           "eviction-pressure-transition-period",
	"evictionSoft":                               "eviction-soft",
	"evictionSoftGracePeriod":                    "eviction-soft-grace-period",
	"failSwapOn":                                 "fail-swap-on",
	"imageGCHighThresholdPercent":                "image-gc-high-threshold",
	"imageGCLowThresholdPercent":                 "image-gc-low-threshold",
	"imageMaximumGCAge":                          "maximum-image-ttl-duration",
	"imageMinimumGCAge":                          "minimum-image-ttl-duration",
	"imagePullCredentialsVerificationPolicy":     "image-pull-credentials-verification-policy",
	"kubeReserved":                               "kube-reserved",
	"maxParallelImagePulls":                      "max-parallel-image-pulls",
	"maxPods":                                    "max-pods",
	"memoryReservationPolicy":                    "memory-reservation-policy",
	"memorySwap.swapBehavior":                    "memory-swap-behavior",
	"memoryThrottlingFactor":                     "memory-throttling-factor",
	"podCIDR":                                    "pod-cidr",
	"podLogsDir":                                 "pod-logs-dir",
	"podPidsLimit":                               "pod-max-pids",
	"port":                                       "port",
	"preloadedImagesVerificationAllowlist":       "preloaded-images-verification-allowlist",
	"registerWithTaints":                         "register-with-taints",
	"reservedSystemCPUs":                         "reserved-cpus",
	"resolvConf":                                 "resolv-conf",
	"rotateCertificates":                         "rotate-certificates",
	"seccompDefault":                             "seccomp-default",
	"serializeImagePulls":                        "serialize-image-pulls",
	"serverTLSBootstrap":                         "rotate-server-certificates",
	"singleProcessOOMKill":                       "single-process-oom-kill",
	"staticPodPath":                              "pod-manifest-path",
	"systemReserved":                             "system-reserved",
	"tlsCertFile":                                "tls-cert-file",
	"tlsPrivateKeyFile":                          "tls-private-key-file",
}

// fixed are the fields for which the nodeagent accepts only one value: the way it always works.
var fixed = map[string]any{
	"authentication.anonymous.enabled":          false,
	"authorization.mode":                        "Webhook",
	"cgroupsPerQOS":                             true,
	"configMapAndSecretChangeDetectionStrategy": "Watch",
	"cpuCFSQuota":                               true,
	"enableDebuggingHandlers":                   true,
	"enableServer":                              true,
	"failCgroupV1":                              false,
	"memoryManagerPolicy":                       "None",
	"nodeLeaseDurationSeconds":                  40,
	"registerNode":                              true,
	"topologyManagerPolicy":                     "none",
}

// setting returns the flag's value that the field sets; none for a fixed field with its only value.
func (f field) setting() (Setting, error) {
	if want, ok := fixed[f.path]; ok {
		if fmt.Sprint(f.value) != fmt.Sprint(want) {
			return Setting{}, fmt.Errorf("%s: %v is not supported, only %v is", f.path, f.value, want)
		}
		return Setting{}, nil
	}
	flag, ok := flags[f.path]
	if !ok {
		return Setting{}, fmt.Errorf("%s: the nodeagent has nothing for this field; %s lists those that it has",
			f.path, page)
	}
	value, err := f.text()
	if err != nil {
		return Setting{}, fmt.Errorf("%s: %w", f.path, err)
	}
	return Setting{Field: f.path, Flag: flag, Value: value}, nil
}

// text returns the value in the form of a flag.
func (f field) text() (string, error) {
	switch value := f.value.(type) {
	case []string:
		return strings.Join(value, ","), nil
	case map[string]string:
		parts := make([]string, 0, len(value))
		for _, key := range slices.Sorted(maps.Keys(value)) {
			parts = append(parts, key+separator(f.path)+value[key])
		}
		return strings.Join(parts, ","), nil
	case metav1.Duration:
		return value.Duration.String(), nil
	case []corev1.Taint:
		parts := make([]string, len(value))
		for i := range value {
			parts[i] = value[i].ToString()
		}
		return strings.Join(parts, ","), nil
	}
	if f.path == "containerLogMaxSize" {
		return bytes(f.value.(string))
	}
	return fmt.Sprint(f.value), nil
}

// separator returns what separates the two parts of a pair in the field's flag.
func separator(path string) string {
	if path == "evictionHard" || path == "evictionSoft" {
		return "<"
	}
	return "="
}

// bytes returns a quantity as a number of bytes.
func bytes(quantity string) (string, error) {
	q, err := resource.ParseQuantity(quantity)
	if err != nil {
		return "", fmt.Errorf("%q must be an amount of bytes, like 10Mi", quantity)
	}
	return strconv.FormatInt(q.Value(), 10), nil
}
