// Package deployment is the API resource deployments of group apps: a desired count of Pods of one template, and how to
// move from one template to the next. It is the model of a resource folder:
//
//	resource.go  what the resource is, what a write prepares, where /scale finds the replicas
//	defaults.go  the values of fields left out
//	validate.go  what is refused, with path and message
//	status.go    what is refused of /status
//	columns.go   what kubectl get prints
//
//keelson:decision
package deployment
