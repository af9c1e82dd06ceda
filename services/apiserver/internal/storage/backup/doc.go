// Package backup takes snapshots of a store and restores them: what `keel store` does.
//
//	store, by its socket or its cluster's servers -> partial file -> checked -> FILE and the record FILE.json
//	FILE -> checked -> a new store beside the old one -> compared with FILE -> exchanged with the old one
//
// keel runs it as a subcommand of the apiserver's program, as that is the one that links etcd. A snapshot is etcd's
// own: etcdutl reads it, and what etcdctl saved is restored. No apiserver is asked for anything.
package backup
