package scenario

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/test/mesh"
)

// ruled is a Pod that is never restarted, of three containers that end with exit code 42: one of them is started again
// by a rule, one by a policy of its own, and neither ends so a second time.
const ruled = `apiVersion: v1
kind: Pod
metadata: {name: ruled}
spec:
  restartPolicy: Never
  volumes: [{name: seen, emptyDir: {}}]
  containers:
  - name: by-rule
    image: ` + Server + `
    command: [sh, -c, "test -e /seen/by-rule && exit 0; : > /seen/by-rule; exit 42"]
    volumeMounts: [{name: seen, mountPath: /seen}]
    restartPolicy: Never
    restartPolicyRules: [{action: Restart, exitCodes: {operator: In, values: [42]}}]
  - name: by-policy
    image: ` + Server + `
    command: [sh, -c, "test -e /seen/by-policy && exit 0; : > /seen/by-policy; exit 42"]
    volumeMounts: [{name: seen, mountPath: /seen}]
    restartPolicy: OnFailure
  - name: never
    image: ` + Server + `
    command: [sh, -c, "exit 42"]
    restartPolicy: Never
    restartPolicyRules: [{action: Restart, exitCodes: {operator: NotIn, values: [42]}}]
`

// ContainerRestartRules runs containers that are restarted by their own policy and rules, regardless of their
// Pod's policy.
func ContainerRestartRules(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	w.KubectlWith(ruled, "apply", "-f", "-")
	var pod *corev1.Pod
	w.Await("the end of the Pod", func() Answer {
		var err error
		if pod, err = w.Client.CoreV1().Pods(w.Namespace).Get(w.Context(), "ruled", metav1.GetOptions{}); err != nil {
			return Saw(err.Error())
		}
		if pod.Status.Phase != corev1.PodFailed {
			return Sawf("%s, %+v", pod.Status.Phase, pod.Status.ContainerStatuses)
		}
		return ""
	})
	for i := range pod.Status.ContainerStatuses {
		status := &pod.Status.ContainerStatuses[i]
		restarts, code := int32(1), int32(0)
		if status.Name == "never" {
			restarts, code = 0, 42
		}
		ended := status.State.Terminated
		if status.RestartCount != restarts || ended == nil || ended.ExitCode != code {
			t.Errorf("%s: %d restarts, ended with %+v; want %d and exit code %d", status.Name, status.RestartCount,
				ended, restarts, code)
		}
	}
}
