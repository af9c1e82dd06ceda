package resourcetest

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

// A bound claim of the default class, whose volumes are folders, does not grow; one of a class that can expand volumes
// does.
func testClaimsGrow(t *testing.T, s *servertest.Server) {
	ctx := t.Context()
	claims := s.Client.CoreV1().PersistentVolumeClaims(s.Namespace(t, "grow"))
	must[*storagev1.StorageClass](t, "creating")(s.Client.StorageV1().StorageClasses().Create(ctx,
		&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "elastic"}, Provisioner: "example.com/disk",
			AllowVolumeExpansion: ptr.To(true)}, metav1.CreateOptions{}))
	for class, may := range map[string]bool{"keelson-local": false, "elastic": true, "": false, "gone": false} {
		claim := must[*corev1.PersistentVolumeClaim](t, "creating")(claims.Create(ctx, newClaim(&class),
			metav1.CreateOptions{}))
		claim.Status.Phase = corev1.ClaimBound
		claim = must[*corev1.PersistentVolumeClaim](t, "binding")(claims.UpdateStatus(ctx, claim,
			metav1.UpdateOptions{}))
		claim.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("2Gi")
		_, err := claims.Update(ctx, claim, metav1.UpdateOptions{})
		refused := apierrors.IsForbidden(err) && strings.HasSuffix(err.Error(), "only dynamically provisioned pvc can "+
			"be resized and the storageclass that provisions the pvc must support resize")
		if may && err != nil || !may && !refused {
			t.Errorf("a claim of class %q grows: %v", class, err)
		}
	}
}
