package authz_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"keelson.dev/services/apiserver/internal/servertest"
)

// A node says how far the volume of a claim of its Pods has grown; about other claims it says nothing, and a claim
// never has more than its volume.
func TestNodesAndGrowth(t *testing.T) {
	authority := servertest.NewAuthority(t)
	s := servertest.Start(t, authority.Trusted(t))
	mine := authority.Client(t, s, "system:node:a", "system:nodes")
	theirs := authority.Client(t, s, "system:node:b", "system:nodes")
	createBound(t, s.Client)
	ctx := t.Context()
	patch := func(client kubernetes.Interface, body string, subresources ...string) error {
		_, err := client.CoreV1().PersistentVolumeClaims("default").Patch(ctx, "data", types.MergePatchType,
			[]byte(body),
			metav1.PatchOptions{}, subresources...)
		return err
	}
	const busy = `{"status":{"allocatedResourceStatuses":{"storage":"NodeResizeInProgress"}}}`
	const done = `{"status":{"capacity":{"storage":"2Gi"},"allocatedResourceStatuses":{"storage":null},"conditions":[]}}`
	refused(t, "another node's claim", patch(theirs, busy, "status"),
		"no relationship found between node 'b' and this object")
	refused(t, "the claim itself", patch(mine, `{"metadata":{"labels":{"a":"b"}}}`),
		`cannot patch resource "persistentvolumeclaims"`)
	claim, err := mine.CoreV1().PersistentVolumeClaims("default").Get(ctx, "data", metav1.GetOptions{})
	allowed(t, "reading its claim", err)
	_, err = mine.CoreV1().PersistentVolumeClaims("default").UpdateStatus(ctx, claim, metav1.UpdateOptions{})
	refused(t, "updating the status", err, `cannot update resource "persistentvolumeclaims/status"`)
	refused(t, "the phase", patch(mine, `{"status":{"phase":"Lost"}}`, "status"),
		"can only update how far a persistentvolumeclaim has grown")
	refused(t, "more than the volume", patch(mine, `{"status":{"capacity":{"storage":"3Gi"}}}`, "status"),
		"it can only have what its persistentvolume of a CSI driver has")
	allowed(t, "that it grows", patch(mine, busy, "status"))
	allowed(t, "that it has grown", patch(mine, done, "status"))
	claim, err = s.Client.CoreV1().PersistentVolumeClaims("default").Get(ctx, "data", metav1.GetOptions{})
	if size := claim.Status.Capacity["storage"]; err != nil || size.String() != "2Gi" ||
		len(claim.Status.AllocatedResourceStatuses) > 0 {
		t.Errorf("the claim is %+v, %v", claim.Status, err)
	}
}

// createBound creates a claim of 1Gi that is bound to a volume of 2Gi, and a Pod of the node a that names it.
func createBound(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	ctx, core, create := t.Context(), client.CoreV1(), metav1.CreateOptions{}
	storage := func(size string) corev1.ResourceList { return corev1.ResourceList{"storage": resource.MustParse(size)} }
	once := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	claim, err := core.PersistentVolumeClaims("default").Create(ctx, &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "data"},
		Spec: corev1.PersistentVolumeClaimSpec{AccessModes: once, VolumeName: "disk", StorageClassName: ptr.To(""),
			Resources: corev1.VolumeResourceRequirements{Requests: storage("1Gi")}}}, create)
	if err != nil {
		t.Fatal(err)
	}
	claim.Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound, AccessModes: once,
		Capacity: storage("1Gi"),
		Conditions: []corev1.PersistentVolumeClaimCondition{{Type: corev1.PersistentVolumeClaimFileSystemResizePending,
			Status: corev1.ConditionTrue}}}
	if _, err := core.PersistentVolumeClaims("default").UpdateStatus(ctx, claim, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err = core.PersistentVolumes().Create(ctx, &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "disk"},
		Spec: corev1.PersistentVolumeSpec{AccessModes: once, Capacity: storage("2Gi"),
			ClaimRef: &corev1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: "default", Name: "data",
				UID: claim.UID},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
				Driver: "disk.example.com", VolumeHandle: "v"}}}}, create)
	if err != nil {
		t.Fatal(err)
	}
	_, err = core.ServiceAccounts("default").Create(ctx,
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, create)
	if err != nil {
		t.Fatal(err)
	}
	_, err = core.Pods("default").Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: corev1.PodSpec{NodeName: "a", AutomountServiceAccountToken: ptr.To(false),
			Containers: []corev1.Container{{Name: "c", Image: "i"}},
			Volumes: []corev1.Volume{{Name: "d", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}}}, create)
	if err != nil {
		t.Fatal(err)
	}
}
