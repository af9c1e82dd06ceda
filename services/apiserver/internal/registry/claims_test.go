package registry_test

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"keelson.dev/services/apiserver/internal/registry/apps/daemonset"
	"keelson.dev/services/apiserver/internal/registry/apps/deployment"
	"keelson.dev/services/apiserver/internal/registry/apps/replicaset"
	"keelson.dev/services/apiserver/internal/registry/apps/statefulset"
	"keelson.dev/services/apiserver/internal/registry/batch/cronjob"
	"keelson.dev/services/apiserver/internal/registry/batch/job"
	"keelson.dev/services/apiserver/internal/registry/core/pod"
	"keelson.dev/services/apiserver/internal/registry/core/podtemplate"
	"keelson.dev/services/apiserver/internal/registry/core/replicationcontroller"
)

// Claims of devices are refused in Pods and templates of every kind, at creation and where an update adds them. What
// has had them since before they were refused can still be changed, or its finalizers could never be taken off.
func TestClaimsOfDevicesAreRefused(t *testing.T) {
	claiming := corev1.PodSpec{ResourceClaims: []corev1.PodResourceClaim{
		{Name: "gpu", ResourceClaimName: ptr.To("gpu")}}}
	template := corev1.PodTemplateSpec{Spec: claiming}
	rows := map[string]refusals{
		"Pod": refused(pod.Validate, pod.ValidateUpdate, corev1.Pod{}, corev1.Pod{Spec: claiming}),
		"PodTemplate": refused(podtemplate.Resource.Strategy.Validate, podtemplate.Resource.Strategy.ValidateUpdate,
			corev1.PodTemplate{}, corev1.PodTemplate{Template: template}),
		"ReplicationController": refused(replicationcontroller.Validate, replicationcontroller.ValidateUpdate,
			corev1.ReplicationController{},
			corev1.ReplicationController{Spec: corev1.ReplicationControllerSpec{Template: &template}}),
		"DaemonSet": refused(daemonset.Validate, daemonset.ValidateUpdate, appsv1.DaemonSet{},
			appsv1.DaemonSet{Spec: appsv1.DaemonSetSpec{Template: template}}),
		"Deployment": refused(deployment.Validate, deployment.ValidateUpdate, appsv1.Deployment{},
			appsv1.Deployment{Spec: appsv1.DeploymentSpec{Template: template}}),
		"ReplicaSet": refused(replicaset.Validate, replicaset.ValidateUpdate, appsv1.ReplicaSet{},
			appsv1.ReplicaSet{Spec: appsv1.ReplicaSetSpec{Template: template}}),
		"StatefulSet": refused(statefulset.Validate, statefulset.ValidateUpdate, appsv1.StatefulSet{},
			appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Template: template}}),
		"Job": refused(job.Validate, job.ValidateUpdate, batchv1.Job{},
			batchv1.Job{Spec: batchv1.JobSpec{Template: template}}),
		"CronJob": refused(cronjob.Validate, cronjob.ValidateUpdate, batchv1.CronJob{}, batchv1.CronJob{
			Spec: batchv1.CronJobSpec{JobTemplate: batchv1.JobTemplateSpec{
				Spec: batchv1.JobSpec{Template: template}}}}),
	}
	for kind, got := range rows {
		if want := (refusals{created: true, added: true}); got != want {
			t.Errorf("%s: %+v, want %+v", kind, got, want)
		}
	}
}

// refusals says when a kind refuses claims: when it is created with them, when they are added, when they are kept.
type refusals struct{ created, added, kept bool }

func refused[O any](create func(*O) field.ErrorList, update func(_, old *O) field.ErrorList, without, with O) refusals {
	return refusals{created: refuses(create(&with)), added: refuses(update(&with, &without)),
		kept: refuses(update(&with, &with))}
}

func refuses(errs field.ErrorList) bool {
	for _, err := range errs {
		if err.Type == field.ErrorTypeForbidden && strings.HasSuffix(err.Field, "resourceClaims") {
			return true
		}
	}
	return false
}
