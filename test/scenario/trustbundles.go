package scenario

import (
	"encoding/pem"
	"fmt"
	"slices"
	"strings"
	"testing"

	"keelson.dev/kit/trustbundle"
	"keelson.dev/kit/trustbundle/trustbundletest"
	"keelson.dev/test/mesh"
)

// trusting is a Pod with the apiserver's CA, a bundle by name, those of a signer that are live, and one that may be
// missing.
const trusting = `apiVersion: v1
kind: Pod
metadata: {name: trusting}
spec:
  terminationGracePeriodSeconds: 1
  automountServiceAccountToken: false
  containers:
  - {name: c, image: ` + HelloV1 + `, volumeMounts: [{name: trust, mountPath: /trust}]}
  volumes:
  - name: trust
    projected:
      sources:
      - clusterTrustBundle: {signerName: kubernetes.io/kube-apiserver-serving, labelSelector: {}, path: apiserver.pem}
      - clusterTrustBundle: {name: NAME-mine, path: mine.pem}
      - clusterTrustBundle: {signerName: example.com/NAME, labelSelector: {matchLabels: {state: live}}, path: web.pem}
      - clusterTrustBundle: {name: NAME-late, optional: true, path: late.pem}
`

// ClusterTrustBundleVolume shows a container the certificates of ClusterTrustBundles: they change with the bundles,
// those of a signer are one file, each certificate once, and a Pod whose bundle is not there says so and waits for it.
func ClusterTrustBundleVolume(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	one, two, three := trustbundletest.Authority(t, "one"), trustbundletest.Authority(t, "two"),
		trustbundletest.Authority(t, "three")
	signer := "example.com/" + w.Namespace
	mine, late, former, live := w.Namespace+"-mine", w.Namespace+"-late", "example.com:"+w.Namespace+":former",
		"example.com:"+w.Namespace+":live"
	defer func() {
		w.TryKubectl("", "delete", "clustertrustbundles", "--ignore-not-found", mine, late, former, live)
	}()
	w.KubectlWith(trusts(former, signer, "live", one+two)+trusts(live, signer, "live", two+three), "apply", "-f", "-")
	w.KubectlWith(strings.ReplaceAll(trusting, "NAME", w.Namespace), "apply", "-f", "-")
	w.awaitOutput([]string{"FailedMount", `clustertrustbundle "` + mine + `" not found`}, "describe", "pod", "trusting")
	w.KubectlWith(trusts(mine, "", "any", one), "apply", "-f", "-")
	w.Kubectl("wait", "--for=condition=Ready", "pod/trusting", "--timeout="+patience.String())
	awaitTrusted(w, "apiserver.pem", blocks(string(m.Admin().CAData))...)
	awaitTrusted(w, "mine.pem", one)
	awaitTrusted(w, "web.pem", one, two, three)
	awaitTrusted(w, "late.pem")

	w.KubectlWith(trusts(mine, "", "any", two+three)+trusts(late, "", "any", three), "apply", "-f", "-")
	awaitTrusted(w, "mine.pem", two, three)
	awaitTrusted(w, "late.pem", three)
	w.Kubectl("label", "clustertrustbundle", former, "state=former", "--overwrite")
	awaitTrusted(w, "web.pem", two, three)
	w.Kubectl("delete", "clustertrustbundle", late)
	awaitTrusted(w, "late.pem")
	w.awaitOutput([]string{"kubernetes.io:kube-apiserver-serving:", "kubernetes.io/kube-apiserver-serving"}, "get",
		"clustertrustbundles", "--field-selector=spec.signerName=kubernetes.io/kube-apiserver-serving")
	w.prints("pod/trusting", "{.status.containerStatuses[0].restartCount}", "0")
	w.Kubectl("delete", "pod", "trusting")
}

// awaitTrusted waits until the file in the container holds these certificates and nothing else. It shows them in an
// order of its own.
func awaitTrusted(w *World, file string, certificates ...string) {
	w.Helper()
	want := strings.Join(slices.Sorted(slices.Values(certificates)), "")
	w.Await(fmt.Sprintf("%s to hold %d certificates", file, len(certificates)), func() Answer {
		r := w.TryKubectl("", "exec", "trusting", "--", "cat", "/trust/"+file)
		if got := strings.Join(slices.Sorted(slices.Values(blocks(r.Stdout))), ""); r.Code != 0 || got != want ||
			len(r.Stdout) != len(want) {
			return Saw(r.Stdout + r.Stderr)
		}
		return ""
	})
}

// blocks returns the certificates of a bundle separately.
func blocks(text string) (found []string) {
	for block := range trustbundle.Blocks(text) {
		found = append(found, string(pem.EncodeToMemory(block)))
	}
	return found
}

// trusts is the manifest of a bundle.
func trusts(name, signer, state, text string) string {
	return fmt.Sprintf(`---
apiVersion: certificates.k8s.io/v1
kind: ClusterTrustBundle
metadata: {name: %q, labels: {state: %q}}
spec: {signerName: %q, trustBundle: %q}
`, name, state, signer, text)
}
