package ingress

import (
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/fieldcheck"
)

var (
	specPath = field.NewPath("spec")
	// A path that is matched element by element has none of these in it, nor these at its end.
	notInPath    = []string{"//", "/./", "/../", "%2f", "%2F"}
	notAtPathEnd = []string{"/..", "/."}
)

// ValidateCreate returns what is wrong with a new Ingress: it names its class in one way only.
func ValidateCreate(i *networkingv1.Ingress) field.ErrorList {
	errs := Validate(i)
	if class, named := i.Annotations[classAnnotation]; named && i.Spec.IngressClassName != nil {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "annotations").Child(classAnnotation), class,
			"can not be set when the class field is also set"))
	}
	return errs
}

// Validate returns what is wrong with an Ingress.
func Validate(i *networkingv1.Ingress) field.ErrorList {
	spec := &i.Spec
	var errs field.ErrorList
	if len(spec.Rules) == 0 && spec.DefaultBackend == nil {
		errs = append(errs, field.Invalid(specPath, spec.Rules, "either `defaultBackend` or `rules` must be specified"))
	}
	if spec.DefaultBackend != nil {
		errs = append(errs, validateBackend(spec.DefaultBackend, specPath.Child("defaultBackend"))...)
	}
	for i := range spec.Rules {
		errs = append(errs, validateRule(&spec.Rules[i], specPath.Child("rules").Index(i))...)
	}
	for i := range spec.TLS {
		path := specPath.Child("tls").Index(i)
		for j, host := range spec.TLS[i].Hosts {
			errs = append(errs, validateHost(host, path.Child("hosts").Index(j))...)
		}
		errs = append(errs, fieldcheck.Optional(spec.TLS[i].SecretName, path.Child("secretName"),
			fieldcheck.DNSSubdomain)...)
	}
	if class := spec.IngressClassName; class != nil {
		errs = append(errs, fieldcheck.Messages(*class, specPath.Child("ingressClassName"),
			fieldcheck.DNSSubdomain(*class))...)
	}
	return errs
}

func validateHost(host string, path *field.Path) field.ErrorList {
	if strings.Contains(host, "*") {
		return fieldcheck.Messages(host, path, validation.IsWildcardDNS1123Subdomain(host))
	}
	return fieldcheck.Messages(host, path, validation.IsDNS1123Subdomain(host))
}

func validateRule(rule *networkingv1.IngressRule, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if rule.Host != "" {
		if isAddress(rule.Host) {
			errs = append(errs, field.Invalid(path.Child("host"), rule.Host, "must be a DNS name, not an IP address"))
		}
		errs = append(errs, validateHost(rule.Host, path.Child("host"))...)
	}
	if rule.HTTP == nil {
		return errs
	}
	paths := path.Child("http", "paths")
	if len(rule.HTTP.Paths) == 0 {
		return append(errs, field.Required(paths, ""))
	}
	for i := range rule.HTTP.Paths {
		errs = append(errs, validatePath(&rule.HTTP.Paths[i], paths.Index(i))...)
		errs = append(errs, validateBackend(&rule.HTTP.Paths[i].Backend, paths.Index(i).Child("backend"))...)
	}
	return errs
}

func validatePath(p *networkingv1.HTTPIngressPath, path *field.Path) field.ErrorList {
	errs := fieldcheck.RequiredOneOf(ptr.Deref(p.PathType, ""), path.Child("pathType"), networkingv1.PathTypeExact,
		networkingv1.PathTypeImplementationSpecific, networkingv1.PathTypePrefix)
	if len(errs) > 0 {
		return errs
	}
	at, free := path.Child("path"), *p.PathType == networkingv1.PathTypeImplementationSpecific
	if !strings.HasPrefix(p.Path, "/") && (!free || p.Path != "") {
		errs = append(errs, field.Invalid(at, p.Path, "must be an absolute path"))
	}
	if free {
		return errs
	}
	for _, part := range notInPath {
		if strings.Contains(p.Path, part) {
			errs = append(errs, field.Invalid(at, p.Path, "must not contain '"+part+"'"))
		}
	}
	for _, end := range notAtPathEnd {
		if strings.HasSuffix(p.Path, end) {
			errs = append(errs, field.Invalid(at, p.Path, "cannot end with '"+end+"'"))
		}
	}
	return errs
}

func validateBackend(b *networkingv1.IngressBackend, path *field.Path) field.ErrorList {
	switch {
	case b.Service != nil && b.Resource != nil:
		return field.ErrorList{field.Invalid(path, "", "cannot set both resource and service backends")}
	case b.Service != nil:
		return validateService(b.Service, path.Child("service"))
	case b.Resource != nil:
		return validateReference(b.Resource, path.Child("resource"))
	}
	return field.ErrorList{field.Invalid(path, "", "resource or service backend is required")}
}

func validateReference(r *corev1.TypedLocalObjectReference, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if r.APIGroup != nil {
		errs = append(errs, fieldcheck.Messages(*r.APIGroup, path.Child("apiGroup"),
			validation.IsDNS1123Subdomain(*r.APIGroup))...)
	}
	errs = append(errs, fieldcheck.Required(r.Kind, path.Child("kind"), content.IsPathSegmentName)...)
	return append(errs, fieldcheck.Required(r.Name, path.Child("name"), content.IsPathSegmentName)...)
}

func validateService(s *networkingv1.IngressServiceBackend, path *field.Path) field.ErrorList {
	errs := fieldcheck.Required(s.Name, path.Child("name"), validation.IsDNS1123Label)
	port := path.Child("port")
	switch {
	case s.Port.Name != "" && s.Port.Number != 0:
		return append(errs, field.Invalid(path, "", "cannot set both port name & port number"))
	case s.Port.Name != "":
		return append(errs, fieldcheck.Messages(s.Port.Name, port.Child("name"),
			validation.IsValidPortName(s.Port.Name))...)
	case s.Port.Number != 0:
		return append(errs, fieldcheck.Messages(s.Port.Number, port.Child("number"),
			validation.IsValidPortNum(int(s.Port.Number)))...)
	}
	return append(errs, field.Required(port, "port name or number is required"))
}

// ValidateStatusUpdate returns what is wrong with where the Ingress is said to be reached.
func ValidateStatusUpdate(i, _ *networkingv1.Ingress) field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("status", "loadBalancer", "ingress")
	for j, point := range i.Status.LoadBalancer.Ingress {
		if point.IP != "" {
			errs = append(errs, validation.IsValidIP(path.Index(j).Child("ip"), point.IP)...)
		}
		host := path.Index(j).Child("hostname")
		errs = append(errs, fieldcheck.Optional(point.Hostname, host, validation.IsDNS1123Subdomain)...)
		if isAddress(point.Hostname) {
			errs = append(errs, field.Invalid(host, point.Hostname, "must be a DNS name, not an IP address"))
		}
	}
	return errs
}

func isAddress(text string) bool {
	_, err := netip.ParseAddr(text)
	return err == nil
}
