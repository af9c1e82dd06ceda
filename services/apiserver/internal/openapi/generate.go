// Package openapi holds the OpenAPI definitions of all served types, generated
// from their Go source, and the configurations that publish them.
package openapi

//go:generate ./generate.sh
