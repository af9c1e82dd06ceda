package endpoints

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"keelson.dev/kit/fieldcheck"
)

// Validate returns what is wrong with a defaulted Endpoints.
func Validate(e *corev1.Endpoints) field.ErrorList {
	var errs field.ErrorList
	for i := range e.Subsets {
		errs = append(errs, validateSubset(&e.Subsets[i], field.NewPath("subsets").Index(i))...)
	}
	return errs
}

func validateSubset(subset *corev1.EndpointSubset, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(subset.Addresses) == 0 && len(subset.NotReadyAddresses) == 0 {
		errs = append(errs, field.Required(path, "must specify `addresses` or `notReadyAddresses`"))
	}
	for i := range subset.Addresses {
		errs = append(errs, validateAddress(&subset.Addresses[i], path.Child("addresses").Index(i))...)
	}
	for i := range subset.NotReadyAddresses {
		errs = append(errs, validateAddress(&subset.NotReadyAddresses[i], path.Child("notReadyAddresses").Index(i))...)
	}
	for i := range subset.Ports {
		errs = append(errs, validatePort(&subset.Ports[i], len(subset.Ports) > 1, path.Child("ports").Index(i))...)
	}
	return errs
}

func validateAddress(address *corev1.EndpointAddress, path *field.Path) field.ErrorList {
	errs := fieldcheck.RoutableIP(address.IP, path.Child("ip"))
	if address.Hostname != "" {
		errs = append(errs, fieldcheck.Messages(address.Hostname, path.Child("hostname"),
			validation.IsDNS1123Label(address.Hostname))...)
	}
	if address.NodeName != nil {
		errs = append(errs, fieldcheck.Messages(*address.NodeName, path.Child("nodeName"),
			validation.IsDNS1123Subdomain(*address.NodeName))...)
	}
	return errs
}

func validatePort(port *corev1.EndpointPort, nameRequired bool, path *field.Path) field.ErrorList {
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
	if port.AppProtocol != nil {
		errs = append(errs, fieldcheck.Messages(*port.AppProtocol, path.Child("appProtocol"),
			validation.IsQualifiedName(*port.AppProtocol))...)
	}
	return errs
}
