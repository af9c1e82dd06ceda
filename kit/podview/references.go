package podview

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/storage/ephemeral"
)

// The resources that Pods refer to.
const (
	ConfigMaps             = "configmaps"
	Secrets                = "secrets"
	PersistentVolumeClaims = "persistentvolumeclaims"
	ServiceAccounts        = "serviceaccounts"
	ServiceAccountTokens   = "serviceaccounts/token"
	Endpoints              = "endpoints"
	ResourceClaims         = "resourceclaims"
	ResourceClaimTemplates = "resourceclaimtemplates"
	PodGroups              = "podgroups"
	ClusterTrustBundles    = "clustertrustbundles"
	PodCertificates        = "podcertificaterequests"
)

// Reference names an object that a Pod needs: in the Pod's own namespace, if objects of the resource have one.
type Reference struct {
	Resource, Name string
}

// VisitReferences shows everything of the API that the Pod makes its node read or ask for: what a node may reach
// because of the Pod, and what a Pod that a node itself made must not have. One object that is named twice is shown
// twice.
//
// It is the only list of them. Its test walks the type and knows what every field of a Pod's spec stands for.
func VisitReferences(pod *corev1.Pod, visit func(Reference)) {
	v := visitor(visit)
	v.show(ServiceAccounts, pod.Spec.ServiceAccountName)
	v.show(ServiceAccounts, pod.Spec.DeprecatedServiceAccount)
	for _, pull := range pod.Spec.ImagePullSecrets {
		v.show(Secrets, pull.Name)
	}
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			VisitEnvironment(containers[i].EnvFrom, containers[i].Env, visit)
		}
	}
	for i := range pod.Spec.EphemeralContainers {
		VisitEnvironment(pod.Spec.EphemeralContainers[i].EnvFrom, pod.Spec.EphemeralContainers[i].Env, visit)
	}
	for i := range pod.Spec.Volumes {
		v.volume(pod, &pod.Spec.Volumes[i])
	}
	for _, claim := range pod.Spec.ResourceClaims {
		v.name(ResourceClaims, claim.ResourceClaimName)
		v.name(ResourceClaimTemplates, claim.ResourceClaimTemplateName)
	}
	if group := pod.Spec.SchedulingGroup; group != nil {
		v.name(PodGroups, group.PodGroupName)
	}
}

// VisitEnvironment shows the ConfigMaps and Secrets that one container's environment takes values from.
func VisitEnvironment(sources []corev1.EnvFromSource, variables []corev1.EnvVar, visit func(Reference)) {
	v := visitor(visit)
	for _, from := range sources {
		if from.ConfigMapRef != nil {
			v.show(ConfigMaps, from.ConfigMapRef.Name)
		}
		if from.SecretRef != nil {
			v.show(Secrets, from.SecretRef.Name)
		}
	}
	for _, variable := range variables {
		if variable.ValueFrom == nil {
			continue
		}
		if ref := variable.ValueFrom.ConfigMapKeyRef; ref != nil {
			v.show(ConfigMaps, ref.Name)
		}
		if ref := variable.ValueFrom.SecretKeyRef; ref != nil {
			v.show(Secrets, ref.Name)
		}
	}
}

type visitor func(Reference)

// show shows an object, unless the field that names it is empty.
func (v visitor) show(resource, name string) {
	if name != "" {
		v(Reference{resource, name})
	}
}

func (v visitor) name(resource string, name *string) {
	if name != nil {
		v.show(resource, *name)
	}
}

func (v visitor) local(resource string, object *corev1.LocalObjectReference) {
	if object != nil {
		v.show(resource, object.Name)
	}
}

// volume shows what the volume names. Each kind has its own look, so that one that hides behind another is seen as
// well.
func (v visitor) volume(pod *corev1.Pod, volume *corev1.Volume) {
	if source := volume.ConfigMap; source != nil {
		v.show(ConfigMaps, source.Name)
	}
	if source := volume.Secret; source != nil {
		v.show(Secrets, source.SecretName)
	}
	if source := volume.Projected; source != nil {
		for i := range source.Sources {
			v.projection(pod, &source.Sources[i])
		}
	}
	if source := volume.PersistentVolumeClaim; source != nil {
		v.show(PersistentVolumeClaims, source.ClaimName)
	}
	if volume.Ephemeral != nil {
		v.show(PersistentVolumeClaims, ephemeral.VolumeClaimName(pod, volume))
	}
	v.driver(&volume.VolumeSource)
}

func (v visitor) projection(pod *corev1.Pod, projection *corev1.VolumeProjection) {
	if source := projection.ConfigMap; source != nil {
		v.show(ConfigMaps, source.Name)
	}
	if source := projection.Secret; source != nil {
		v.show(Secrets, source.Name)
	}
	if projection.ServiceAccountToken != nil {
		v(Reference{ServiceAccountTokens, pod.Spec.ServiceAccountName})
	}
	if source := projection.ClusterTrustBundle; source != nil {
		name := ""
		if source.Name != nil {
			name = *source.Name
		}
		v(Reference{ClusterTrustBundles, name})
	}
	if projection.PodCertificate != nil {
		v(Reference{PodCertificates, ""})
	}
}

// driver shows what the driver of a volume identifies itself with or finds its servers by.
func (v visitor) driver(source *corev1.VolumeSource) {
	if s := source.AzureFile; s != nil {
		v.show(Secrets, s.SecretName)
	}
	if s := source.CephFS; s != nil {
		v.local(Secrets, s.SecretRef)
	}
	if s := source.Cinder; s != nil {
		v.local(Secrets, s.SecretRef)
	}
	if s := source.CSI; s != nil {
		v.local(Secrets, s.NodePublishSecretRef)
	}
	if s := source.FlexVolume; s != nil {
		v.local(Secrets, s.SecretRef)
	}
	if s := source.Glusterfs; s != nil {
		v.show(Endpoints, s.EndpointsName)
	}
	if s := source.ISCSI; s != nil {
		v.local(Secrets, s.SecretRef)
	}
	if s := source.RBD; s != nil {
		v.local(Secrets, s.SecretRef)
	}
	if s := source.ScaleIO; s != nil {
		v.local(Secrets, s.SecretRef)
	}
	if s := source.StorageOS; s != nil {
		v.local(Secrets, s.SecretRef)
	}
}
