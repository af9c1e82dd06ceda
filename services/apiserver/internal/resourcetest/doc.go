// Package resourcetest drives the resources of a real apiserver as clients do: what only shows with the store, the
// admission chain and the request path together. Rules of single fields are tested in the resources' own folders.
package resourcetest
