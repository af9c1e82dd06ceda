package podview

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// naming are the fields of a PodSpec that stand for an object of the API, and its resource. Those that say it by being
// there at all have no name of their own in them.
var naming = map[string]string{
	"PodSpec.ServiceAccountName": "serviceaccounts", "PodSpec.DeprecatedServiceAccount": "serviceaccounts",
	"PodSpec.ImagePullSecrets":        "secrets",
	"PodSchedulingGroup.PodGroupName": "podgroups",

	"PodResourceClaim.ResourceClaimName":         "resourceclaims",
	"PodResourceClaim.ResourceClaimTemplateName": "resourceclaimtemplates",

	"ConfigMapEnvSource.LocalObjectReference": "configmaps", "ConfigMapKeySelector.LocalObjectReference": "configmaps",
	"SecretEnvSource.LocalObjectReference": "secrets", "SecretKeySelector.LocalObjectReference": "secrets",

	"ConfigMapVolumeSource.LocalObjectReference": "configmaps",
	"ConfigMapProjection.LocalObjectReference":   "configmaps",
	"SecretVolumeSource.SecretName":              "secrets", "SecretProjection.LocalObjectReference": "secrets",
	"VolumeProjection.ServiceAccountToken":        "serviceaccounts/token",
	"VolumeProjection.ClusterTrustBundle":         "clustertrustbundles",
	"VolumeProjection.PodCertificate":             "podcertificaterequests",
	"PersistentVolumeClaimVolumeSource.ClaimName": "persistentvolumeclaims",
	"VolumeSource.Ephemeral":                      "persistentvolumeclaims",

	"AzureFileVolumeSource.SecretName": "secrets", "CephFSVolumeSource.SecretRef": "secrets",
	"CinderVolumeSource.SecretRef":         "secrets",
	"CSIVolumeSource.NodePublishSecretRef": "secrets", "FlexVolumeSource.SecretRef": "secrets",
	"ISCSIVolumeSource.SecretRef": "secrets",
	"RBDVolumeSource.SecretRef":   "secrets", "ScaleIOVolumeSource.SecretRef": "secrets",
	"StorageOSVolumeSource.SecretRef":     "secrets",
	"GlusterfsVolumeSource.EndpointsName": "endpoints",
}

// public are the fields that name what every node may read, or what no node reads.
var public = []string{"PodSpec.NodeName", "PodSpec.RuntimeClassName", "PodSpec.PriorityClassName",
	"PodSpec.SchedulerName"}

// plain are all other fields with text: content, settings, names within the Pod or outside of the API.
const plain = `
AWSElasticBlockStoreVolumeSource: VolumeID FSType
AppArmorProfile: Type LocalhostProfile
AzureDiskVolumeSource: DiskName DataDiskURI CachingMode FSType Kind
AzureFileVolumeSource: ShareName
CSIVolumeSource: Driver FSType VolumeAttributes
Capabilities: Add Drop
CephFSVolumeSource: Monitors Path User SecretFile
CinderVolumeSource: VolumeID FSType
ConfigMapKeySelector: Key
Container: Name Image Command Args WorkingDir RestartPolicy
Container: TerminationMessagePath TerminationMessagePolicy ImagePullPolicy
ContainerPort: Name Protocol HostIP
ContainerResizePolicy: ResourceName RestartPolicy
ContainerRestartRule: Action
ContainerRestartRuleOnExitCodes: Operator
DownwardAPIVolumeFile: Path
EmptyDirVolumeSource: Medium
EnvFromSource: Prefix
EnvVar: Name Value
EphemeralContainer: TargetContainerName
EphemeralContainerCommon: Name Image Command Args WorkingDir RestartPolicy
EphemeralContainerCommon: TerminationMessagePath TerminationMessagePolicy ImagePullPolicy
EvictionResponder: Name
ExecAction: Command
FCVolumeSource: TargetWWNs FSType WWIDs
FileKeySelector: VolumeName Path Key
FlexVolumeSource: Driver FSType Options
FlockerVolumeSource: DatasetName DatasetUUID
GCEPersistentDiskVolumeSource: PDName FSType
GRPCAction: Service Mode
GitRepoVolumeSource: Repository Revision Directory
GlusterfsVolumeSource: Path
HTTPGetAction: Path Host Scheme Protocol
HTTPHeader: Name Value
HostAlias: IP Hostnames
HostPathVolumeSource: Path Type
ISCSIVolumeSource: TargetPortal IQN ISCSIInterface FSType Portals InitiatorName
ImageVolumeSource: Reference PullPolicy
IntOrString: StrVal
KeyToPath: Key Path
LabelSelector: MatchLabels
LabelSelectorRequirement: Key Operator Values
Lifecycle: StopSignal
NFSVolumeSource: Server Path
NodeSelectorRequirement: Key Operator Values
ObjectFieldSelector: APIVersion FieldPath
PhotonPersistentDiskVolumeSource: PdID FSType
PodAffinityTerm: Namespaces TopologyKey MatchLabelKeys MismatchLabelKeys
PodDNSConfig: Nameservers Searches
PodDNSConfigOption: Name Value
PodOS: Name
PodReadinessGate: ConditionType
PodResourceClaim: Name
PodSchedulingGate: Name
PodSecurityContext: SupplementalGroupsPolicy FSGroupChangePolicy SELinuxChangePolicy
PodSpec: RestartPolicy DNSPolicy NodeSelector Hostname Subdomain PreemptionPolicy HostnameOverride
PortworxVolumeSource: VolumeID FSType
Quantity: Format
QuobyteVolumeSource: Registry Volume User Group Tenant
RBDVolumeSource: CephMonitors RBDImage FSType RBDPool RadosUser Keyring
ResourceClaim: Name Request
ResourceFieldSelector: ContainerName Resource
SELinuxOptions: User Role Type Level
ScaleIOVolumeSource: Gateway System ProtectionDomain StoragePool StorageMode VolumeName FSType
SeccompProfile: Type LocalhostProfile
SecretKeySelector: Key
SecurityContext: ProcMount
StorageOSVolumeSource: VolumeName VolumeNamespace FSType
Sysctl: Name Value
TCPSocketAction: Host
Toleration: Key Operator Value Effect
TopologySpreadConstraint: TopologyKey WhenUnsatisfiable NodeAffinityPolicy NodeTaintsPolicy MatchLabelKeys
Volume: Name
VolumeDevice: Name DevicePath
VolumeMount: Name RecursiveReadOnly MountPath SubPath MountPropagation SubPathExpr BindMountOptions
VsphereVirtualDiskVolumeSource: VolumePath FSType StoragePolicyName StoragePolicyID
WindowsSecurityContextOptions: GMSACredentialSpecName GMSACredentialSpec RunAsUserName
`

// An unclassified field may refer to an object that a node must read or a mirror Pod must not name.
func TestEveryFieldIsClassified(t *testing.T) {
	unseen := map[string]bool{}
	for name := range naming {
		unseen[name] = true
	}
	for line := range strings.Lines(strings.TrimSpace(plain)) {
		owner, names, _ := strings.Cut(line, ":")
		for name := range strings.FieldsSeq(names) {
			unseen[owner+"."+name] = true
		}
	}
	for _, name := range public {
		unseen[name] = true
	}
	known := map[string]bool{}
	for name := range unseen {
		known[name] = true
	}
	walk(reflect.TypeFor[corev1.PodSpec](), "", "spec", whole, func(at field) {
		delete(unseen, at.name)
		if !known[at.name] {
			t.Errorf(
				"%s (%s): add it to what names an object, with its resource, to what is public or to what is plain",
				at.name, at.path)
			return
		}
		wantShown(t, at)
	})
	for name := range unseen {
		t.Errorf("%s is classified, but a PodSpec has no such field", name)
	}
}

// wantShown sets the field alone and wants it visited if it names an object, wherever in a Pod it stands.
func wantShown(t *testing.T, at field) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	value := at.locate(reflect.ValueOf(&pod.Spec).Elem())
	if value.Kind() == reflect.String {
		value.SetString("object")
	}
	var got, want []string
	VisitReferences(pod, func(r Reference) { got = append(got, r.Resource+" "+r.Name) })
	if resource := naming[at.name]; resource != "" {
		want = []string{resource + " object"}
	}
	switch at.name {
	case "VolumeSource.Ephemeral":
		want = []string{"persistentvolumeclaims web-"}
	case "VolumeProjection.ServiceAccountToken", "VolumeProjection.ClusterTrustBundle",
		"VolumeProjection.PodCertificate":
		want = []string{naming[at.name] + " "}
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s shows %q, want %q", at.path, got, want)
	}
}

// field is a field with text, or one that is classified as a whole, at one of the places where a PodSpec has it.
type field struct {
	// name is the type and the field, path how it is reached.
	name, path string
	// locate makes the way to the field in a spec.
	locate func(spec reflect.Value) reflect.Value
}

func whole(spec reflect.Value) reflect.Value { return spec }

// walk shows every field of the type. A reference without a type of its own counts as the field that holds it.
func walk(kind reflect.Type, name, path string, locate func(reflect.Value) reflect.Value, show func(field)) {
	switch {
	case kind.Kind() == reflect.String || kind.Kind() == reflect.Struct && kind.Name() != "LocalObjectReference" &&
		naming[name] != "":
		show(field{name, path, locate})
	case kind.Kind() == reflect.Pointer:
		walk(kind.Elem(), name, path, func(spec reflect.Value) reflect.Value {
			at := locate(spec)
			at.Set(reflect.New(kind.Elem()))
			return at.Elem()
		}, show)
	case kind.Kind() == reflect.Slice:
		walk(kind.Elem(), name, path+"[0]", func(spec reflect.Value) reflect.Value {
			at := locate(spec)
			at.Set(reflect.MakeSlice(kind, 1, 1))
			return at.Index(0)
		}, show)
	case kind.Kind() == reflect.Map && kind.Elem().Kind() == reflect.String:
		show(field{name, path, locate})
	case kind.Kind() == reflect.Struct:
		for i := range kind.NumField() {
			f := kind.Field(i)
			if !f.IsExported() {
				continue
			}
			inner := name
			if kind != reflect.TypeFor[corev1.LocalObjectReference]() {
				inner = kind.Name() + "." + f.Name
			}
			walk(f.Type, inner, path+"."+f.Name,
				func(spec reflect.Value) reflect.Value { return locate(spec).Field(i) }, show)
		}
	}
}
