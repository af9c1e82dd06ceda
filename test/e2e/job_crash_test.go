package e2e

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/test/mesh"
	"keelson.dev/test/mesh/processes"
	"keelson.dev/test/scenario"
)

// jobsThroughCrashes ends the Jobs' controller by SIGKILL right after it has told of Pods that ended, has let them go,
// or has made some. Started again, it counts each Pod once.
//
// JOB-159
func jobsThroughCrashes(t *testing.T, m *processes.Mesh) {
	for _, failpoint := range []string{"job.status.after=2*off->crash", "pod.finalizers.after=1*off->crash",
		"pod.create.after=2*off->crash"} {
		t.Run(failpoint, func(t *testing.T) {
			w := scenario.In(t, m)
			die(w, m, mesh.WorkloadControllers, "workload-controllers/"+failpoint, func() string {
				return w.TryKubectl(`apiVersion: batch/v1
kind: Job
metadata: {name: counted}
spec:
  completions: 6
  parallelism: 3
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: `+scenario.Server+`, command: [sh, -c, "exit 0"]}]
`, "apply", "-f", "-").Stderr
			})
			w.Kubectl("wait", "--for=condition=Complete", "job/counted", "--timeout=80s")
			job, err := w.Client.BatchV1().Jobs(w.Namespace).Get(w.Context(), "counted", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			succeeded := int32(0)
			for _, pod := range w.Pods("job-name=counted") {
				if pod.Status.Phase == corev1.PodSucceeded {
					succeeded++
				}
			}
			if s := job.Status; s.Succeeded != succeeded || s.Failed != 0 || succeeded < 6 {
				t.Errorf("%d Pods have succeeded; status %+v", succeeded, s)
			}
		})
	}
}
