// Package rest is what all resources share: a Resource says in data and pure
// functions what one API resource is, and New turns it into the storages that
// the API machinery serves. See internal/registry/README.md for the checklist
// "add a resource".
package rest
