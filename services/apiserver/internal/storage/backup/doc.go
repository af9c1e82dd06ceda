// Package backup takes snapshots of a store, restores them, and moves the store to an etcd cluster and back: what
// `keel store` does.
//
//	store, by its socket or its cluster's servers -> partial file -> checked -> FILE and the record FILE.json
//	FILE -> checked -> a new store beside the old one -> compared with FILE -> exchanged with the old one
//
//	store -> copied to a cluster that no apiserver uses yet -> compared -> given up, and kept under another name
//	cluster -> snapshot -> a new store -> compared -> the cluster is marked as left -> the new store has its name
//
// keel runs it as a subcommand of the apiserver's program, as that is the one that links etcd. A snapshot is etcd's
// own: etcdutl reads it, and what etcdctl saved is restored. No apiserver is asked for anything.
package backup
