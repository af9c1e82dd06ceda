package persistentvolumeclaim

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/fieldcheck/fieldtest"
	"keelson.dev/services/apiserver/internal/registry/table/tabletest"
)

type edit = func(*corev1.PersistentVolumeClaim)

// data is a claim after edits, defaulted and prepared.
func data(edits ...edit) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "data", Namespace: "default"},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: storage("2Gi")},
		},
	}
	for _, edit := range edits {
		edit(c)
	}
	Default(c)
	return c
}

func storage(size string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
}

func asks(size string) edit {
	return func(c *corev1.PersistentVolumeClaim) { c.Spec.Resources.Requests = storage(size) }
}

func bound(c *corev1.PersistentVolumeClaim) {
	c.Spec.VolumeName = "pv-1"
	c.Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound, Capacity: storage("2Gi")}
}

func class(name *string) edit {
	return func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = name }
}

// annotated names the class in the older way.
func annotated(name string) edit {
	return func(c *corev1.PersistentVolumeClaim) {
		c.Annotations = map[string]string{corev1.BetaStorageClassAnnotation: name}
	}
}

func attributes(name *string) edit {
	return func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeAttributesClassName = name }
}

func TestDefault(t *testing.T) {
	if c := data(); *c.Spec.VolumeMode != "Filesystem" || c.Status.Phase != "Pending" {
		t.Errorf("%+v", c)
	}
	c := data(bound)
	Resource.ObjectWrites().PrepareForCreate(c)
	if c.Status.Phase != "Pending" || c.Status.Capacity != nil {
		t.Errorf("a new claim has the status %+v", c.Status)
	}
}

// What is said in one of the two fields for a source stands in both.
func TestDataSource(t *testing.T) {
	group := ptr.To("snapshot.storage.k8s.io")
	source := &corev1.TypedLocalObjectReference{APIGroup: group, Kind: "VolumeSnapshot", Name: "s"}
	ref := &corev1.TypedObjectReference{APIGroup: group, Kind: "VolumeSnapshot", Name: "s"}
	for name, edit := range map[string]edit{
		"source": func(c *corev1.PersistentVolumeClaim) { c.Spec.DataSource = source },
		"ref":    func(c *corev1.PersistentVolumeClaim) { c.Spec.DataSourceRef = ref },
	} {
		c := data(edit)
		Resource.ObjectWrites().PrepareForCreate(c)
		if c.Spec.DataSource == nil || c.Spec.DataSourceRef == nil || *c.Spec.DataSource.APIGroup != *group ||
			c.Spec.DataSourceRef.Name != "s" || c.Spec.DataSource.Kind != "VolumeSnapshot" {
			t.Errorf("%s: %+v, %+v", name, c.Spec.DataSource, c.Spec.DataSourceRef)
		}
	}
	elsewhere := ref.DeepCopy()
	elsewhere.Namespace = ptr.To("other")
	c := data(func(c *corev1.PersistentVolumeClaim) { c.Spec.DataSourceRef = elsewhere })
	Resource.ObjectWrites().PrepareForCreate(c)
	if c.Spec.DataSource != nil {
		t.Error("a source in another namespace has got a local reference")
	}
}

func TestValidateUpdate(t *testing.T) {
	const immutable = "spec: Forbidden: spec is immutable after creation except resources.requests and " +
		"volumeAttributesClassName for bound claims"
	const annotation = "metadata.annotations[volume.beta.kubernetes.io/storage-class]: Invalid value"
	for name, row := range map[string]struct {
		old, new *corev1.PersistentVolumeClaim
		want     []string
	}{
		"nothing":     {data(), data(), nil},
		"it is bound": {data(), data(bound), nil},
		"to another volume": {data(bound),
			data(bound, func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "pv-2" }), []string{immutable}},
		"it is given its class":       {data(), data(class(ptr.To("fast"))), nil},
		"another class":               {data(class(ptr.To("slow"))), data(class(ptr.To("fast"))), []string{immutable}},
		"no class any more":           {data(class(ptr.To("slow"))), data(), []string{immutable}},
		"its class moves to the spec": {data(annotated("slow")), data(class(ptr.To("slow"))), nil},
		"it moves as another":         {data(annotated("slow")), data(class(ptr.To("fast"))), []string{annotation}},
		"an annotated class":          {data(), data(annotated("fast")), []string{annotation}},
		"another annotated class":     {data(annotated("slow")), data(annotated("fast")), []string{annotation}},
		"no annotated class any more": {data(annotated("slow")), data(), []string{annotation}},
		"an annotated class besides": {data(class(ptr.To("slow"))), data(class(ptr.To("slow")), annotated("fast")),
			[]string{annotation}},
		"only the other of two": {data(annotated("slow"), class(ptr.To("slow"))), data(class(ptr.To("slow"))),
			[]string{annotation}},
		"grows unbound":        {data(), data(asks("3Gi")), []string{immutable}},
		"grows":                {data(bound), data(bound, asks("3Gi")), nil},
		"shrinks what it grew": {data(bound, asks("4Gi")), data(bound, asks("2Gi")), nil},
		"shrinks below it holds": {data(bound), data(bound, asks("2047Mi")),
			[]string{"spec.resources.requests.storage: Forbidden: field can not be less than status.capacity"}},
		"attributes":         {data(bound), data(bound, attributes(ptr.To("gold"))), nil},
		"attributes unbound": {data(), data(attributes(ptr.To("gold"))), []string{immutable}},
		"no attributes any more": {data(bound, attributes(ptr.To("gold"))), data(bound),
			[]string{"spec.volumeAttributesClassName: Forbidden: update from non-nil value to nil is forbidden"}},
		"an invalid one": {data(bound), data(bound, asks("0")), []string{"spec.resources[storage]: Invalid value",
			"spec.resources.requests.storage: Forbidden"}},
	} {
		t.Run(name, func(t *testing.T) { fieldtest.Check(t, ValidateUpdate(row.new, row.old), row.want...) })
	}
}

func TestValidateStatusUpdate(t *testing.T) {
	c := data(bound)
	c.Status.ModifyVolumeStatus = &corev1.ModifyVolumeStatus{Status: corev1.PersistentVolumeClaimModifyVolumePending}
	fieldtest.Check(t, ValidateStatusUpdate(c, c))
	fieldtest.Check(t, ValidateStatusUpdate(data(bound, annotated("fast")), data(bound)),
		"metadata.annotations[volume.beta.kubernetes.io/storage-class]: Invalid value")
	c.Status.Capacity, c.Status.AllocatedResources = storage("-1"), storage("-1")
	c.Status.ModifyVolumeStatus.Status = ""
	fieldtest.Check(t, ValidateStatusUpdate(c, c), "status.capacity[storage]: Invalid value",
		"status.allocatedResources[storage]: Invalid value", "status.modifyVolumeStatus.status: Required value")
}

func TestColumns(t *testing.T) { tabletest.Golden(t, Resource) }
