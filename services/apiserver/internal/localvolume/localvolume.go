// Package localvolume names what the parts of the mesh tell each other about volumes that are folders on a node.
package localvolume

const (
	// ClassName is the StorageClass of such volumes.
	ClassName = "keelson-local"
	// Provisioner is who makes them.
	Provisioner = "local.keelson.dev"
	// NodeLabel is the label of a PersistentVolume that names the Node that has its folder.
	NodeLabel = "local.keelson.dev/node"
	// FolderFinalizer keeps a PersistentVolume until its Node has removed the folder.
	FolderFinalizer = "local.keelson.dev/folder"
)
