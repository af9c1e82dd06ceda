package bench

import (
	"context"
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

const (
	jobs        = 100
	completions = 50
	cronJobs    = 1000
)

// BenchmarkJob runs 100 Jobs of 50 Pods, all at once, to their end on simulated nodes and deletes them.
func BenchmarkJob(b *testing.B) {
	measureLife(b, deploymentNodes, jobs*completions, phase{"Run", runJobs}, phase{"CascadeDelete", deleteJobs})
}

// BenchmarkCronJob has 1,000 CronJobs that are all due in the same minute. That they are made and wait for it is not
// measured.
func BenchmarkCronJob(b *testing.B) {
	measureLife(b, deploymentNodes, cronJobs, phase{"Make", makeCronJobs}, phase{"Due", awaitCronJobs})
}

// jobSpec is that of a Job whose Pods succeed as soon as they have started.
func jobSpec(count int32) batchv1.JobSpec {
	spec := podSpec(deploymentImage)
	spec.RestartPolicy, spec.Containers[0].Command = corev1.RestartPolicyNever, []string{"exit 0"}
	return batchv1.JobSpec{Completions: &count, Parallelism: &count, Template: corev1.PodTemplateSpec{Spec: spec}}
}

func runJobs(b *testing.B, client kubernetes.Interface) {
	each(b, jobs, func(ctx context.Context, i int) error {
		_, err := client.BatchV1().Jobs(namespace).Create(ctx, &batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("job-", i)}, Spec: jobSpec(completions),
		}, metav1.CreateOptions{})
		return err
	})
	awaitJobs(b, client, jobs, completions)
}

func awaitJobs(b *testing.B, client kubernetes.Interface, count int, succeeded int32) {
	b.Helper()
	awaitObjects(b, objects(client.BatchV1().RESTClient(), "jobs"), &batchv1.Job{}, count, func(job *batchv1.Job) bool {
		return job.Status.CompletionTime != nil && job.Status.Succeeded == succeeded
	})
}

func deleteJobs(b *testing.B, client kubernetes.Interface) {
	background := metav1.DeletePropagationBackground
	each(b, jobs, func(ctx context.Context, i int) error {
		return client.BatchV1().Jobs(namespace).Delete(ctx, fmt.Sprint("job-", i),
			metav1.DeleteOptions{PropagationPolicy: &background})
	})
	awaitNoPods(b, client)
}

// makeCronJobs makes them due once, in a minute that leaves the time to make them all.
func makeCronJobs(b *testing.B, client kubernetes.Interface) {
	const ahead = 20 * time.Second
	due := time.Now().UTC().Add(ahead).Truncate(time.Minute).Add(time.Minute)
	zone := "UTC"
	each(b, cronJobs, func(ctx context.Context, i int) error {
		_, err := client.BatchV1().CronJobs(namespace).Create(ctx, &batchv1.CronJob{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("cron-", i)},
			Spec: batchv1.CronJobSpec{
				Schedule: fmt.Sprintf("%d %d * * *", due.Minute(), due.Hour()), TimeZone: &zone,
				JobTemplate: batchv1.JobTemplateSpec{Spec: jobSpec(1)},
			},
		}, metav1.CreateOptions{})
		return err
	})
}

func awaitCronJobs(b *testing.B, client kubernetes.Interface) { awaitJobs(b, client, cronJobs, 1) }
