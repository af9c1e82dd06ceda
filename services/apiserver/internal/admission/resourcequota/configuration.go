package resourcequota

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	libraryapi "k8s.io/apiserver/pkg/admission/plugin/resourcequota/apis/resourcequota"
	"k8s.io/apiserver/pkg/admission/plugin/resourcequota/apis/resourcequota/install"
	apiv1 "k8s.io/apiserver/pkg/admission/plugin/resourcequota/apis/resourcequota/v1"
	"k8s.io/apiserver/pkg/admission/plugin/resourcequota/apis/resourcequota/validation"

	"keelson.dev/kit/configfile"
	registry "keelson.dev/services/apiserver/internal/registry/core/resourcequota"
)

var kind = configfile.Kind{APIVersion: apiv1.SchemeGroupVersion.String(), Name: "ResourceQuotaConfiguration"}

var scheme = func() *runtime.Scheme {
	known := runtime.NewScheme()
	install.Install(known)
	return known
}()

// Check says what is wrong with a ResourceQuotaConfiguration of apiserver.config.k8s.io/v1.
func Check(data []byte) error {
	_, err := parse(data)
	return err
}

// parse returns what a file says is limited where no quota allows it. What is empty limits nothing.
func parse(data []byte) (*libraryapi.Configuration, error) {
	configuration := &libraryapi.Configuration{}
	if len(data) == 0 {
		return configuration, nil
	}
	said := &apiv1.Configuration{}
	if err := kind.Decode(data, said); err != nil {
		return nil, err
	}
	if err := scheme.Convert(said, configuration, nil); err != nil {
		return nil, err
	}
	errs := validation.ValidateConfiguration(configuration)
	for i, limited := range configuration.LimitedResources {
		at := field.NewPath("limitedResources").Index(i)
		for j := range limited.MatchScopes {
			errs = append(errs, registry.ValidateRequirement(&limited.MatchScopes[j],
				at.Child("matchScopes").Index(j))...)
		}
		if len(limited.MatchContains)+len(limited.MatchScopes) == 0 {
			errs = append(errs, field.Required(at, fmt.Sprintf(
				"matchContains or matchScopes must say which %s are limited", limited.Resource)))
		}
	}
	return configuration, errs.ToAggregate()
}
