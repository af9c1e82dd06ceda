// Package localvolume has the names that the daemons share about volumes that are folders of a node.
package localvolume

const (
	// ClassName is the StorageClass of such volumes.
	ClassName = "keelson-local"
	// Driver is who makes them: the provisioner of their class and the CSI driver of their PersistentVolumes.
	Driver = "local.keelson.dev"
	// NodeLabel is the label of a PersistentVolume that names the Node that has its folder.
	NodeLabel = "local.keelson.dev/node"
	// FolderFinalizer keeps a PersistentVolume until its Node has removed the folder.
	FolderFinalizer = "local.keelson.dev/folder"
)
