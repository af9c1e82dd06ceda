// Package deployment is the API resource deployments of group apps: a desired count of Pods of one template, and how to
// move from one template to the next. It is the model of a resource folder:
//
//	storage.go   what the resource is, and its storages by path
//	strategy.go  what a write may touch, metadata.generation
//	defaults.go  the values of fields left out
//	validate.go  what is refused, with path and message
//	status.go    the rules of /status
//	scale.go     how /scale reads and writes it
//	columns.go   what kubectl get prints
package deployment
