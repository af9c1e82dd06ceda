// Package resource says in data and pure functions what one API resource is: its names, how it is defaulted, checked
// and printed, and what the rules are for writes of its objects. It knows nothing of requests, stores or the API
// machinery of k8s.io/apiserver: a Resource is a value that a test reads, and registry/rest makes of it what is served.
// registry/README.md is the checklist "add a resource".
//
//keelson:decision
package resource
