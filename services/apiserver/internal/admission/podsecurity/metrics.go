package podsecurity

import (
	"sync"

	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/component-base/metrics/legacyregistry"
	baseversion "k8s.io/component-base/version"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/metrics"
)

// recorder counts evaluations, exemptions and errors (pod_security_*_total) among the library's metrics; servers in one
// process share it.
var recorder = sync.OnceValue(func() *metrics.PrometheusRecorder {
	served := version.MustParse(baseversion.DefaultKubeBinaryVersion)
	r := metrics.NewPrometheusRecorder(api.MajorMinorVersion(int(served.Major()), int(served.Minor())))
	r.MustRegister(legacyregistry.MustRegister)
	return r
})
