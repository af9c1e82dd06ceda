package csistoragecapacity

import (
	"testing"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/fieldcheck/fieldtest"
	"keelson.dev/services/apiserver/internal/registry/table/tabletest"
)

func capacity(class, left, largest string, topology *metav1.LabelSelector) *storagev1.CSIStorageCapacity {
	return &storagev1.CSIStorageCapacity{StorageClassName: class, Capacity: ptr.To(resource.MustParse(left)),
		MaximumVolumeSize: ptr.To(resource.MustParse(largest)), NodeTopology: topology}
}

func in(zone string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"zone": zone}}
}

func TestValidate(t *testing.T) {
	fieldtest.Check(t, Validate(capacity("fast", "0", "0", nil)))
	fieldtest.Check(t, Validate(capacity("fast", "1Gi", "1Mi", in("a"))))
	fieldtest.Check(t, Validate(&storagev1.CSIStorageCapacity{StorageClassName: "fast"}))
	fieldtest.Check(t, Validate(capacity("", "-1", "-1", in("a b"))),
		"storageClassName: Required value",
		`nodeTopology.matchLabels: Invalid value: "a b"`,
		`capacity: Invalid value: "-1": must be greater than or equal to 0`,
		`maximumVolumeSize: Invalid value: "-1": must be greater than or equal to 0`)
	fieldtest.Check(t, Validate(capacity("A", "0", "0", nil)), `storageClassName: Invalid value: "A"`)
}

func TestValidateUpdate(t *testing.T) {
	old := capacity("fast", "1Gi", "1Gi", in("a"))
	fieldtest.Check(t, ValidateUpdate(capacity("fast", "2Gi", "3Gi", in("a")), old))
	fieldtest.Check(t, ValidateUpdate(capacity("slow", "1Gi", "1Gi", in("b")), old),
		`storageClassName: Invalid value: "slow": field is immutable`, "nodeTopology: Invalid value: {")
}

func TestColumns(t *testing.T) { tabletest.Golden(t, Resource) }
