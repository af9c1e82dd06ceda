// Package rest makes of a resource.Resource what the API machinery of k8s.io/apiserver serves: Serve turns its data and
// pure functions into an Entry of the list of all resources, whose storages create, update and delete as the resource's
// rules say. The few resources that do more, and so need the API machinery themselves, are a Served with their own
// subresources, a Computed, or Reviews. What a resource is does not belong here. See registry/README.md for the
// checklist "add a resource".
package rest
