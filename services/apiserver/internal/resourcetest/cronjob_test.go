package resourcetest

import (
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/services/apiserver/internal/servertest"
)

// What the server makes of a CronJob.
func testCronJobs(t *testing.T, s *servertest.Server) {
	ctx := t.Context()
	client, warnings := warned(t, s)
	cronJobs := client.BatchV1().CronJobs(s.Namespace(t, "cronjobs"))
	hello := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Name: "hello.every.minute"}, Spec: batchv1.CronJobSpec{
		Schedule: "* * * * *", JobTemplate: batchv1.JobTemplateSpec{
			Spec: batchv1.JobSpec{Template: podOf("OnFailure")}}}}
	created := must[*batchv1.CronJob](t, "creating")(cronJobs.Create(ctx, hello, metav1.CreateOptions{}))
	if created.Spec.ConcurrencyPolicy != "Allow" || created.Generation != 1 ||
		created.Spec.JobTemplate.Spec.Selector != nil || len(created.Spec.JobTemplate.Spec.Template.Labels) != 0 {
		t.Errorf("%+v", created)
	}
	if got := warnings.take(); len(got) != 1 || !strings.HasPrefix(got[0], "metadata.name: ") {
		t.Errorf("warnings %q", got)
	}
	hello.Name, hello.Spec.Schedule = "zoned", "TZ=UTC"
	_, err := cronJobs.Create(ctx, hello, metav1.CreateOptions{})
	refusedAt(t, err, "spec.schedule") // JOB-221
	hello.Spec.Schedule, hello.Spec.TimeZone = "* * * * *", ptr.To("Nowhere")
	_, err = cronJobs.Create(ctx, hello, metav1.CreateOptions{})
	refusedAt(t, err, "spec.timeZone") // JOB-218
	if err := cronJobs.Delete(ctx, created.Name, metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	if got := warnings.take(); len(got) != 0 {
		t.Errorf("warnings %q", got)
	}
	if _, err := cronJobs.Get(ctx, created.Name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("after the deletion: %v", err)
	}
}
