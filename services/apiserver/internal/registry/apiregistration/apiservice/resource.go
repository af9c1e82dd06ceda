// Package apiservice is the resource APIService of group apiregistration.k8s.io: which server answers requests for a
// version of a group.
//
//keelson:decision
package apiservice

import (
	"k8s.io/apimachinery/pkg/runtime"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"keelson.dev/services/apiserver/internal/registry/table"
	"keelson.dev/services/apiserver/internal/resource"
)

// Resource is the APIService with its /status.
var Resource = resource.Resource[*apiregistration.APIService]{
	Group:         apiregistration.GroupName,
	Name:          "apiservices",
	Singular:      "apiservice",
	Categories:    []string{"api-extensions"},
	ClusterScoped: true,
	New:           func() *apiregistration.APIService { return &apiregistration.APIService{} },
	NewList:       func() runtime.Object { return &apiregistration.APIServiceList{} },
	Default:       apiregistration.SetObjectDefaults_APIService,
	NoGeneration:  true,
	Spec: resource.PartOf(func(a *apiregistration.APIService) *apiregistration.APIServiceSpec {
		return &a.Spec
	}),
	Status: resource.PartOf(func(a *apiregistration.APIService) *apiregistration.APIServiceStatus {
		return &a.Status
	}),
	Strategy: resource.Strategy[*apiregistration.APIService]{
		Name:     resource.PathSegmentName, // Validate says which one it must be
		Validate: Validate,
	},
	StatusStrategy: resource.Strategy[*apiregistration.APIService]{ValidateUpdate: ValidateStatusUpdate},
	Columns: resource.NewColumns(
		resource.NameColumn[*apiregistration.APIService](),
		resource.Column("Service", "string", "The Service whose endpoints answer, or Local", serviceCell),
		resource.Column("Available", "string", "Whether requests are answered, and why not", availableCell),
		resource.AgeColumn[*apiregistration.APIService](),
	),
}

func serviceCell(a *apiregistration.APIService) any {
	if a.Spec.Service == nil {
		return "Local"
	}
	return a.Spec.Service.Namespace + "/" + a.Spec.Service.Name
}

func availableCell(a *apiregistration.APIService) any {
	for _, c := range a.Status.Conditions {
		switch {
		case c.Type != apiregistration.Available:
		case c.Status == apiregistration.ConditionTrue:
			return string(c.Status)
		default:
			return string(c.Status) + " (" + c.Reason + ")"
		}
	}
	return table.Unknown
}
