package service

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"keelson.dev/kit/fieldcheck"
)

func validatePorts(spec *corev1.ServiceSpec) field.ErrorList {
	path := specPath.Child("ports")
	if len(spec.Ports) == 0 && !headless(spec) && spec.Type != corev1.ServiceTypeExternalName {
		return field.ErrorList{field.Required(path, "")}
	}
	var errs field.ErrorList
	seen := seenPorts{names: map[string]bool{}, ports: map[protocolPort]bool{}, nodePorts: map[protocolPort]bool{}}
	for i := range spec.Ports {
		port, path := &spec.Ports[i], path.Index(i)
		errs = append(errs, validatePort(port, len(spec.Ports) > 1, path)...)
		errs = append(errs, seen.check(port, path)...)
		if port.NodePort != 0 && !mayHaveNodePorts(spec) {
			errs = append(errs, field.Forbidden(path.Child("nodePort"), "may not be used when `type` is '"+
				string(spec.Type)+"'"))
		}
	}
	return errs
}

func validatePort(port *corev1.ServicePort, nameRequired bool, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch {
	case port.Name != "":
		errs = append(errs, fieldcheck.Messages(port.Name, path.Child("name"), validation.IsDNS1123Label(port.Name))...)
	case nameRequired:
		errs = append(errs, field.Required(path.Child("name"), ""))
	}
	errs = append(errs, fieldcheck.Messages(port.Port, path.Child("port"),
		validation.IsValidPortNum(int(port.Port)))...)
	errs = append(errs, fieldcheck.Protocol(port.Protocol, path.Child("protocol"))...)
	target := path.Child("targetPort")
	if port.TargetPort.Type == intstr.Int {
		errs = append(errs, fieldcheck.Messages(port.TargetPort.IntVal, target,
			validation.IsValidPortNum(int(port.TargetPort.IntVal)))...)
	} else {
		errs = append(errs, fieldcheck.Messages(port.TargetPort.StrVal, target,
			validation.IsValidPortName(port.TargetPort.StrVal))...)
	}
	if port.AppProtocol != nil {
		errs = append(errs, fieldcheck.Messages(*port.AppProtocol, path.Child("appProtocol"),
			validation.IsQualifiedName(*port.AppProtocol))...)
	}
	return errs
}

type protocolPort struct {
	protocol corev1.Protocol
	port     int32
}

// seenPorts finds what two ports of one Service have in common but must not.
type seenPorts struct {
	names            map[string]bool
	ports, nodePorts map[protocolPort]bool
}

func (s seenPorts) check(port *corev1.ServicePort, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if port.Name != "" && s.names[port.Name] {
		errs = append(errs, field.Duplicate(path.Child("name"), port.Name))
	}
	s.names[port.Name] = true
	key := protocolPort{port.Protocol, port.Port}
	if s.ports[key] {
		errs = append(errs, field.Duplicate(path, corev1.ServicePort{Protocol: port.Protocol, Port: port.Port}))
	}
	s.ports[key] = true
	if port.NodePort == 0 {
		return errs
	}
	key.port = port.NodePort
	if s.nodePorts[key] {
		errs = append(errs, field.Duplicate(path.Child("nodePort"), port.NodePort))
	}
	s.nodePorts[key] = true
	return errs
}
