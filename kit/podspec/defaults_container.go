package podspec

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/kit/defaults"
)

func setContainerDefaults(c *corev1.Container) {
	defaults.Set(&c.TerminationMessagePath, corev1.TerminationMessagePathDefault)
	defaults.Set(&c.TerminationMessagePolicy, corev1.TerminationMessageReadFile)
	defaults.Set(&c.ImagePullPolicy, pullPolicyFor(c.Image))
	for i := range c.Ports {
		defaults.Set(&c.Ports[i].Protocol, corev1.ProtocolTCP)
	}
	for i := range c.Env {
		setEnvDefaults(&c.Env[i])
	}
	for _, probe := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
		setProbeDefaults(probe)
	}
	setLifecycleDefaults(c.Lifecycle)
	roundUp(c.Resources.Limits)
	roundUp(c.Resources.Requests)
}

// SetEphemeralContainerDefaults fills the unset fields of an ephemeral container, as those of any other container.
func SetEphemeralContainerDefaults(e *corev1.EphemeralContainer) {
	c := corev1.Container(e.EphemeralContainerCommon)
	setContainerDefaults(&c)
	e.EphemeralContainerCommon = corev1.EphemeralContainerCommon(c)
}

// pullPolicyFor is Always for an image that may change under its name: one tagged "latest" or not tagged at all.
func pullPolicyFor(image string) corev1.PullPolicy {
	if imageTag(image) == "latest" {
		return corev1.PullAlways
	}
	return corev1.PullIfNotPresent
}

// imageTag returns the tag that an image reference names: "latest" when it names none, empty when a digest stands in
// its place or the reference is no image name.
func imageTag(image string) string {
	name, _, hasDigest := strings.Cut(image, "@")
	repository, tag := name, ""
	if colon := strings.LastIndex(name, ":"); colon > strings.LastIndex(name, "/") {
		repository, tag = name[:colon], name[colon+1:]
	}
	switch {
	case !isRepository(repository):
		return ""
	case tag != "" || hasDigest:
		return tag
	}
	return "latest"
}

// isRepository reports whether every path component of a repository is in lower case and not empty. The registry's
// host in front, recognized by a dot, a port or a capital letter, may be in any case.
func isRepository(repository string) bool {
	host, path, found := strings.Cut(repository, "/")
	if !found || !strings.ContainsAny(host, ".:") && host == strings.ToLower(host) {
		path = repository
	}
	for component := range strings.SplitSeq(path, "/") {
		if component == "" || strings.Trim(component, "abcdefghijklmnopqrstuvwxyz0123456789._-") != "" {
			return false
		}
	}
	return true
}

func setEnvDefaults(env *corev1.EnvVar) {
	if env.ValueFrom != nil && env.ValueFrom.FieldRef != nil {
		defaults.Set(&env.ValueFrom.FieldRef.APIVersion, "v1")
	}
}

func setProbeDefaults(probe *corev1.Probe) {
	if probe == nil {
		return
	}
	defaults.Set(&probe.TimeoutSeconds, 1)
	defaults.Set(&probe.PeriodSeconds, 10)
	defaults.Set(&probe.SuccessThreshold, 1)
	defaults.Set(&probe.FailureThreshold, 3)
	setHTTPGetDefaults(probe.HTTPGet)
	if probe.GRPC != nil {
		defaults.SetPtr(&probe.GRPC.Service, "")
	}
}

func setLifecycleDefaults(lifecycle *corev1.Lifecycle) {
	if lifecycle == nil {
		return
	}
	for _, handler := range []*corev1.LifecycleHandler{lifecycle.PostStart, lifecycle.PreStop} {
		if handler != nil {
			setHTTPGetDefaults(handler.HTTPGet)
		}
	}
}

func setHTTPGetDefaults(action *corev1.HTTPGetAction) {
	if action != nil {
		defaults.Set(&action.Path, "/")
		defaults.Set(&action.Scheme, corev1.URISchemeHTTP)
	}
}

// requestLimits requests the limit of each resource that is limited but not requested.
func requestLimits(resources *corev1.ResourceRequirements) {
	if resources.Limits == nil {
		return
	}
	if resources.Requests == nil {
		resources.Requests = corev1.ResourceList{}
	}
	for name, limit := range resources.Limits {
		if _, set := resources.Requests[name]; !set {
			resources.Requests[name] = limit.DeepCopy()
		}
	}
}

// exposeOnHost gives ports in the host's network the only host port they can have.
func exposeOnHost(ports []corev1.ContainerPort) {
	for i := range ports {
		defaults.Set(&ports[i].HostPort, ports[i].ContainerPort)
	}
}
