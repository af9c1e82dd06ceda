package persistentvolume

// The annotations by which claims and volumes tell how they came to each other.
const (
	annotationBound         = "pv.kubernetes.io/bind-completed"
	annotationByController  = "pv.kubernetes.io/bound-by-controller"
	annotationProvisionedBy = "pv.kubernetes.io/provisioned-by"
	annotationNode          = "volume.kubernetes.io/selected-node"
	annotationProvisioner   = "volume.kubernetes.io/storage-provisioner"
	annotationProvisionerV1 = "volume.beta.kubernetes.io/storage-provisioner"
	yes                     = "yes"
)

const (
	// protection keeps a volume that a claim is bound to; podgc takes it away.
	protection = "kubernetes.io/pv-protection"
	// noProvisioner is that of classes whose volumes people make.
	noProvisioner = "kubernetes.io/no-provisioner"
)
