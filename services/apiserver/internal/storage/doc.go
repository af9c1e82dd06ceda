// Package storage keeps the API objects: an etcd inside the process by default,
// an etcd cluster by option, and above both the library's store and watch cache.
// One client is shared by all resources.
package storage
