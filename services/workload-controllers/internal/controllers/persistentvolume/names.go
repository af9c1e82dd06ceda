package persistentvolume

// The annotations that record how claims and volumes were bound.
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
	// protection keeps a volume that a claim is bound to; podgc removes it.
	protection = "kubernetes.io/pv-protection"
	// noProvisioner is the provisioner of classes whose volumes users create.
	noProvisioner = "kubernetes.io/no-provisioner"
)
