package resourcetest

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/services/apiserver/internal/servertest"
)

func newClaim(class *string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "c-"},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: class,
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
}

// SET-053: a claim that says nothing about its class gets the default one, if there is one.
func testStorageClasses(t *testing.T, s *servertest.Server) {
	ctx := t.Context()
	claims, classes := s.Client.CoreV1().PersistentVolumeClaims(s.Namespace(t, "claims")),
		s.Client.StorageV1().StorageClasses()
	gets := func(want string) {
		t.Helper()
		servertest.Eventually(t, "claims get the class "+want, func(ctx context.Context) string {
			made, err := claims.Create(ctx, newClaim(nil), metav1.CreateOptions{})
			if err != nil {
				return err.Error()
			}
			if got := ptr.Deref(made.Spec.StorageClassName, "(none)"); got != want {
				return "the claim's class is " + got
			}
			return ""
		})
	}
	gets("keelson-local")
	none := must[*corev1.PersistentVolumeClaim](t, "creating")(claims.Create(ctx, newClaim(ptr.To("")),
		metav1.CreateOptions{}))
	if *none.Spec.StorageClassName != "" {
		t.Errorf("a claim that asks for no class has %q", *none.Spec.StorageClassName)
	}
	own := must[*storagev1.StorageClass](t, "reading")(classes.Get(ctx, "keelson-local", metav1.GetOptions{}))
	own.Annotations["storageclass.kubernetes.io/is-default-class"] = "false"
	own = must[*storagev1.StorageClass](t, "updating")(classes.Update(ctx, own, metav1.UpdateOptions{}))
	gets("(none)")
	own.Annotations["storageclass.kubernetes.io/is-default-class"] = "true"
	must[*storagev1.StorageClass](t, "updating")(classes.Update(ctx, own, metav1.UpdateOptions{}))
	gets("keelson-local")
}
