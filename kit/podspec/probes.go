package podspec

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"keelson.dev/kit/fieldcheck"
)

func (s containerScope) validateProbes(c *corev1.Container, fldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	if c.LivenessProbe != nil {
		errs = append(errs, validateRestartingProbe(c.LivenessProbe, fldPath.Child("livenessProbe"))...)
	}
	if c.StartupProbe != nil {
		errs = append(errs, validateRestartingProbe(c.StartupProbe, fldPath.Child("startupProbe"))...)
	}
	if probe := c.ReadinessProbe; probe != nil {
		at := fldPath.Child("readinessProbe")
		errs = append(errs, validateProbe(probe, at)...)
		if probe.TerminationGracePeriodSeconds != nil {
			errs = append(errs, field.Invalid(at.Child("terminationGracePeriodSeconds"),
				*probe.TerminationGracePeriodSeconds, "must not be set for readinessProbes"))
		}
	}
	return errs
}

// validateRestartingProbe checks a probe whose failure ends the container: its first success settles the matter.
func validateRestartingProbe(probe *corev1.Probe, fldPath *field.Path) field.ErrorList {
	errs := validateProbe(probe, fldPath)
	if probe.SuccessThreshold != 1 {
		errs = append(errs, field.Invalid(fldPath.Child("successThreshold"), probe.SuccessThreshold, "must be 1"))
	}
	return errs
}

func validateProbe(probe *corev1.Probe, fldPath *field.Path) field.ErrorList {
	actions := probeActions(&probe.ProbeHandler, fldPath)
	errs := validateActions(actions, fldPath)
	for _, number := range []struct {
		name  string
		value int32
	}{
		{"initialDelaySeconds", probe.InitialDelaySeconds},
		{"timeoutSeconds", probe.TimeoutSeconds},
		{"periodSeconds", probe.PeriodSeconds},
		{"successThreshold", probe.SuccessThreshold},
		{"failureThreshold", probe.FailureThreshold},
	} {
		errs = append(errs, fieldcheck.NonNegative(int64(number.value), fldPath.Child(number.name))...)
	}
	if grace := probe.TerminationGracePeriodSeconds; grace != nil && *grace <= 0 {
		errs = append(errs, field.Invalid(fldPath.Child("terminationGracePeriodSeconds"), *grace,
			"must be greater than 0"))
	}
	return errs
}

// action is one way of asking a container: its field, and its check when it is set.
type action struct {
	path  *field.Path
	set   bool
	check func(*field.Path) field.ErrorList
}

func probeActions(handler *corev1.ProbeHandler, fldPath *field.Path) []action {
	return append(commonActions(handler.Exec, handler.HTTPGet, handler.TCPSocket, fldPath),
		action{fldPath.Child("grpc"), handler.GRPC != nil, func(at *field.Path) field.ErrorList {
			port := int(handler.GRPC.Port)
			return fieldcheck.Messages(port, at.Child("port"), validation.IsValidPortNum(port))
		}})
}

func commonActions(exec *corev1.ExecAction, http *corev1.HTTPGetAction, tcp *corev1.TCPSocketAction,
	fldPath *field.Path) []action {
	return []action{
		{fldPath.Child("exec"), exec != nil, func(at *field.Path) field.ErrorList {
			if len(exec.Command) == 0 {
				return field.ErrorList{field.Required(at.Child("command"), "")}
			}
			return noNULs(exec.Command, at.Child("command"))
		}},
		{fldPath.Child("httpGet"), http != nil, func(at *field.Path) field.ErrorList {
			return validateHTTPGet(http,
				at)
		}},
		{fldPath.Child("tcpSocket"), tcp != nil, func(at *field.Path) field.ErrorList {
			return portReference(tcp.Port, at.Child("port"))
		}},
	}
}

// validateActions wants exactly one action and checks it.
func validateActions(actions []action, fldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	chosen := false
	for _, a := range actions {
		switch {
		case !a.set:
		case chosen:
			errs = append(errs, field.Forbidden(a.path, "may not specify more than 1 handler type"))
		default:
			chosen = true
			errs = append(errs, a.check(a.path)...)
		}
	}
	if !chosen {
		errs = append(errs, field.Required(fldPath, "must specify a handler type"))
	}
	return errs
}

func validateHTTPGet(http *corev1.HTTPGetAction, fldPath *field.Path) field.ErrorList {
	errs := fieldcheck.Required(http.Path, fldPath.Child("path"), fieldcheck.NotEmpty)
	errs = append(errs, portReference(http.Port, fldPath.Child("port"))...)
	errs = append(errs, fieldcheck.OneOf(http.Scheme, fldPath.Child("scheme"),
		corev1.URISchemeHTTP, corev1.URISchemeHTTPS)...)
	for i, header := range http.HTTPHeaders {
		errs = append(errs, fieldcheck.Messages(header.Name, fldPath.Child("httpHeaders").Index(i).Child("name"),
			validation.IsHTTPHeaderName(header.Name))...)
	}
	return errs
}

func (s containerScope) validateLifecycle(lifecycle *corev1.Lifecycle, fldPath *field.Path) field.ErrorList {
	if lifecycle == nil {
		return nil
	}
	var errs field.ErrorList
	if lifecycle.PostStart != nil {
		errs = append(errs, s.validateHook(lifecycle.PostStart, fldPath.Child("postStart"))...)
	}
	if lifecycle.PreStop != nil {
		errs = append(errs, s.validateHook(lifecycle.PreStop, fldPath.Child("preStop"))...)
	}
	return errs
}

func (s containerScope) validateHook(handler *corev1.LifecycleHandler, fldPath *field.Path) field.ErrorList {
	sleep := action{fldPath.Child("sleep"), handler.Sleep != nil, func(at *field.Path) field.ErrorList {
		return s.validateSleep(handler.Sleep.Seconds, at)
	}}
	return validateActions(append(commonActions(handler.Exec, handler.HTTPGet, handler.TCPSocket, fldPath), sleep),
		fldPath)
}

// validateSleep lets a hook sleep no longer than the Pod has to end.
func (s containerScope) validateSleep(seconds int64, fldPath *field.Path) field.ErrorList {
	grace := int64(corev1.DefaultTerminationGracePeriodSeconds)
	if s.spec.TerminationGracePeriodSeconds != nil {
		grace = *s.spec.TerminationGracePeriodSeconds
	}
	if seconds >= 0 && seconds <= grace {
		return nil
	}
	return field.ErrorList{field.Invalid(fldPath, seconds,
		fmt.Sprintf("must be non-negative and less than terminationGracePeriodSeconds (%d)", grace))}
}
