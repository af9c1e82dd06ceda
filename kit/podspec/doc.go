// Package podspec holds the rules of a Pod's specification, wherever it stands: in a Pod or in the template of a
// workload.
//
// SetDefaults fills a Pod's spec, SetTemplateDefaults that of a template (which leaves a few fields to the Pods made
// from it). DropUnserved clears the fields of alpha features that this cluster does not serve. Validate and
// ValidateTemplate check a defaulted spec and report every mistake with its field path, in the API's own words.
//
// The package is pure: its results depend on its arguments alone. What an update of a Pod may change belongs to the
// Pod resource, not here.
//
//keelson:decision
package podspec
