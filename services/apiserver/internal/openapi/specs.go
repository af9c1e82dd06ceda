package openapi

import (
	"fmt"

	"github.com/google/uuid"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/kube-openapi/pkg/cached"
	"k8s.io/kube-openapi/pkg/handler"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// specs are what single definitions add to the documents. Each is built once, when it is first read.
type specs map[types.UID]*definedSpecs

// definedSpecs are those of one definition, by version.
type definedSpecs struct {
	definition *apiextensionsv1.CustomResourceDefinition
	v2         map[string]cached.Value[*spec.Swagger]
	v3         map[string]cached.Value[*spec3.OpenAPI]
}

// keep forgets all but the definitions. It returns them as they were when they last said something else: a change of
// the status alone is none.
func (s specs) keep(definitions []*apiextensionsv1.CustomResourceDefinition) []*apiextensionsv1.
	CustomResourceDefinition {
	kept := map[types.UID]bool{}
	same := make([]*apiextensionsv1.CustomResourceDefinition, 0, len(definitions))
	for _, d := range definitions {
		kept[d.UID] = true
		if last := s[d.UID]; last == nil || !saysTheSame(last.definition, d) {
			s[d.UID] = newDefinedSpecs(d)
		}
		same = append(same, s[d.UID].definition)
	}
	for uid := range s {
		if !kept[uid] {
			delete(s, uid)
		}
	}
	return same
}

func saysTheSame(a, b *apiextensionsv1.CustomResourceDefinition) bool {
	return a == b || equality.Semantic.DeepEqual(&a.Spec, &b.Spec) &&
		equality.Semantic.DeepEqual(&a.Status.AcceptedNames, &b.Status.AcceptedNames)
}

func newDefinedSpecs(d *apiextensionsv1.CustomResourceDefinition) *definedSpecs {
	s := &definedSpecs{definition: d, v2: map[string]cached.Value[*spec.Swagger]{},
		v3: map[string]cached.Value[*spec3.OpenAPI]{}}
	for i := range d.Spec.Versions {
		if !d.Spec.Versions[i].Served {
			continue
		}
		version := d.Spec.Versions[i].Name
		s.v2[version] = once(func() (*spec.Swagger, error) {
			built, err := builder.BuildOpenAPIV2(d, version, builder.Options{V2: true, IncludeSelectableFields: true})
			if err != nil {
				return nil, err
			}
			// As those of what is always served: the document has no defaults.
			built.Definitions = handler.PruneDefaults(built.Definitions)
			return built, nil
		})
		s.v3[version] = once(func() (*spec3.OpenAPI, error) {
			return builder.BuildOpenAPIV3(d, version, builder.Options{IncludeSelectableFields: true})
		})
	}
	return s
}

// v3 is the document of one version of a group.
func (s specs) v3(version schema.GroupVersion, of []*apiextensionsv1.CustomResourceDefinition) cached.Value[*spec3.
	OpenAPI] {
	var parts []cached.Value[*spec3.OpenAPI]
	for _, d := range of {
		parts = append(parts, s[d.UID].v3[version.Version])
	}
	return once(func() (*spec3.OpenAPI, error) { return builder.MergeSpecsV3(built(parts)...) })
}

// v2 is the one document of all: the definitions, and then the others, add to what is always served.
func (s specs) v2(
	always *spec.Swagger, of []*apiextensionsv1.CustomResourceDefinition, others []*spec.Swagger,
) cached.Value[*spec.Swagger] {
	var parts []cached.Value[*spec.Swagger]
	for _, d := range of {
		for i := range d.Spec.Versions {
			if v := &d.Spec.Versions[i]; v.Served {
				parts = append(parts, s[d.UID].v2[v.Name])
			}
		}
	}
	return once(func() (*spec.Swagger, error) {
		own, err := builder.MergeSpecs(always, built(parts)...)
		if err != nil {
			return nil, err
		}
		return withOthers(own, others), nil
	})
}

// built are the values of the parts. One that cannot be built is left out, and does not keep the others from being
// read.
func built[T any](parts []cached.Value[T]) []T {
	values := make([]T, 0, len(parts))
	for _, part := range parts {
		value, _, err := part.Get()
		if err != nil {
			utilruntime.HandleError(fmt.Errorf("publishing a CustomResourceDefinition by OpenAPI: %w", err))
			continue
		}
		values = append(values, value)
	}
	return values
}

// once is what build returns, which is called for the first who reads it. Each is told from all others.
func once[T any](build func() (T, error)) cached.Value[T] {
	etag := uuid.NewString()
	return cached.Once(cached.Func(func() (T, string, error) {
		value, err := build()
		return value, etag, err
	}))
}
