package podspec

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func project(sources ...corev1.VolumeProjection) func(*corev1.PodSpec) {
	return withVolume(corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: sources}})
}

// keysTo is a Secret's keys, each in a file of the given path.
func keysTo(paths ...string) corev1.VolumeProjection {
	secret := &corev1.SecretProjection{LocalObjectReference: named}
	for _, path := range paths {
		secret.Items = append(secret.Items, corev1.KeyToPath{Key: "k", Path: path})
	}
	return corev1.VolumeProjection{Secret: secret}
}

// Files of all sources share one directory: none may be where another is, nor above or below it.
func TestProjectedFiles(t *testing.T) {
	token := corev1.VolumeProjection{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "a"}}
	bundle := corev1.VolumeProjection{ClusterTrustBundle: &corev1.ClusterTrustBundleProjection{Name: ptr.To("n"),
		Path: "a"}}
	config := corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: named,
		Items: []corev1.KeyToPath{{Key: "k", Path: "a"}}}}
	downward := corev1.VolumeProjection{DownwardAPI: &corev1.DownwardAPIProjection{
		Items: []corev1.DownwardAPIVolumeFile{{Path: "a",
			FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}}}}
	certificate := func(bundle, key, chain string) corev1.VolumeProjection {
		return corev1.VolumeProjection{PodCertificate: &corev1.PodCertificateProjection{SignerName: "e.io/s",
			KeyType: "RSA3072", CredentialBundlePath: bundle, KeyPath: key, CertificateChainPath: chain}}
	}
	second := func(path string) []string {
		return []string{`spec.volumes[0].projected.sources[1]: Invalid value: "` + path +
			`": conflicting duplicate paths`}
	}
	runAll(t, []row{
		{name: "neighbours", change: project(keysTo("a", "ab", "a.b", "b/a"))},
		{name: "above", change: project(keysTo("a/b/c"), keysTo("a/b")), want: second("a/b")},
		{name: "below", change: project(keysTo("a"), keysTo("a/b")), want: second("a/b")},
		{name: "written in two ways", change: project(keysTo("a/b"), keysTo("./a//b")), want: second("./a//b")},
		{name: "token", change: project(keysTo("a"), token), want: second("a")},
		{name: "bundle", change: project(keysTo("a"), bundle), want: second("a")},
		{name: "ConfigMap", change: project(keysTo("a"), config), want: second("a")},
		{name: "downward API", change: project(keysTo("a"), downward), want: second("a")},
		{name: "credential bundle", change: project(keysTo("a"), certificate("a", "", "")), want: second("a")},
		{name: "key", change: project(keysTo("a"), certificate("", "a", "")), want: second("a")},
		{name: "certificate chain", change: project(keysTo("a"), certificate("", "", "a")), want: second("a")},
		{name: "whole sources", change: project(corev1.VolumeProjection{Secret: &corev1.SecretProjection{
			LocalObjectReference: named}}, corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{
			LocalObjectReference: named}})},
	})
}

func TestProjectionBounds(t *testing.T) {
	token := func(seconds int64) func(*corev1.PodSpec) {
		return project(corev1.VolumeProjection{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "t",
			ExpirationSeconds: &seconds}})
	}
	certificate := func(seconds int32) func(*corev1.PodSpec) {
		return project(corev1.VolumeProjection{PodCertificate: &corev1.PodCertificateProjection{SignerName: "e.io/s",
			KeyType: "ECDSAP256", KeyPath: "k", CertificateChainPath: "c", MaxExpirationSeconds: &seconds}})
	}
	mode := func(mode int32) func(*corev1.PodSpec) {
		return withVolume(corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{DefaultMode: &mode,
			Sources: []corev1.VolumeProjection{keysTo("a")}}})
	}
	const at = "spec.volumes[0].projected"
	const expiration = at + ".sources[0].podCertificate.maxExpirationSeconds: Invalid value: "
	const octal = "must be a number between 0 and 0777 (octal), both inclusive"
	runAll(t, []row{
		{name: "token for ten minutes", change: token(600)},
		{name: "token for the longest time", change: token(4294967296)},
		{name: "certificate for less than an hour", change: certificate(3599),
			want: []string{expiration + "3599: must be between 3600 and 7862400, inclusive"}},
		{name: "certificate for an hour", change: certificate(3600)},
		{name: "certificate for 91 days", change: certificate(7862400)},
		{name: "certificate for more than 91 days", change: certificate(7862401),
			want: []string{expiration + "7862401: must be between 3600 and 7862400, inclusive"}},
		{name: "no rights", change: mode(0)},
		{name: "all rights", change: mode(0o777)},
		{name: "negative rights", change: mode(-1), want: []string{at + ".defaultMode: Invalid value: -1: " + octal}},
		{name: "more than all rights", change: mode(0o1000),
			want: []string{at + ".defaultMode: Invalid value: 512: " + octal}},
	})
}

func TestMalformedProjections(t *testing.T) {
	bundle := func(b corev1.ClusterTrustBundleProjection) func(*corev1.PodSpec) {
		return project(corev1.VolumeProjection{ClusterTrustBundle: &b})
	}
	const at = "spec.volumes[0].projected.sources[0]"
	const absolute = `: Invalid value: "/a": must be a relative path`
	runAll(t, []row{
		{name: "keys of a Secret", change: project(keysTo("/a")),
			want: []string{at + ".secret.items[0].path" + absolute}},
		{name: "keys of a ConfigMap", change: project(corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{
			LocalObjectReference: named, Items: []corev1.KeyToPath{{Key: "k", Path: "/a"}}}}),
			want: []string{at + ".configMap.items[0].path" + absolute}},
		{name: "files of the downward API", change: project(corev1.VolumeProjection{
			DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{{Path: "/a",
				FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}}}}),
			want: []string{at + ".downwardAPI.items[0].path" + absolute}},
		{name: "a bundle's file", change: bundle(corev1.ClusterTrustBundleProjection{Name: ptr.To("n"), Path: "/a"}),
			want: []string{at + ".clusterTrustBundle.path" + absolute}},
		{name: "a bundle without a name", change: bundle(corev1.ClusterTrustBundleProjection{Name: ptr.To(""),
			Path: "a"}), want: []string{at + ".clusterTrustBundle.name: Required value"}},
		{name: "a bundle of no signer", change: bundle(corev1.ClusterTrustBundleProjection{SignerName: ptr.To(""),
			Path: "a"}), want: []string{at + ".clusterTrustBundle.signerName: Required value"}},
		{name: "a bundle by name and signer", change: bundle(corev1.ClusterTrustBundleProjection{Name: ptr.To("n"),
			SignerName: ptr.To("s"), Path: "a"}), want: []string{at + `.clusterTrustBundle: Invalid value: ` +
			`{"name":"n","signerName":"s","path":"a"}: only one of name and signerName may be used`}},
		{name: "a bundle by malformed labels", change: bundle(corev1.ClusterTrustBundleProjection{
			SignerName: ptr.To("e.io/s"), Path: "a", LabelSelector: &metav1.LabelSelector{
				MatchLabels: map[string]string{"a b": ""}}}),
			want: []string{at + `.clusterTrustBundle.labelSelector.matchLabels: Invalid value: "a b": ` + notAName}},
		{name: "a certificate's files", change: project(corev1.VolumeProjection{
			PodCertificate: &corev1.PodCertificateProjection{SignerName: "e.io/s", KeyType: "RSA4096", KeyPath: "/a",
				CredentialBundlePath: "..a", CertificateChainPath: "b/../c"}}), want: []string{
			at + `.podCertificate.certificateChainPath: Invalid value: "b/../c": must not contain '..'`,
			at + `.podCertificate.credentialBundlePath: Invalid value: "..a": must not start with '..'`,
			at + `.podCertificate.keyPath` + absolute}},
	})
}

// A source names bundles and signers as the API knows them.
func TestProjectedCertificateNames(t *testing.T) {
	long := strings.Repeat("n", 253)
	label := strings.Repeat("n", 63)
	longest := strings.Repeat(label+".", 3) + label[:61] + "/" + label + "." + long
	bundle := func(edit func(*corev1.ClusterTrustBundleProjection)) func(*corev1.PodSpec) {
		b := corev1.ClusterTrustBundleProjection{Path: "a"}
		edit(&b)
		return project(corev1.VolumeProjection{ClusterTrustBundle: &b})
	}
	byName := func(name string) func(*corev1.PodSpec) {
		return bundle(func(b *corev1.ClusterTrustBundleProjection) { b.Name = &name })
	}
	bySigner := func(name string) func(*corev1.PodSpec) {
		return bundle(func(b *corev1.ClusterTrustBundleProjection) { b.SignerName = &name })
	}
	certificate := func(signer string) func(*corev1.PodSpec) {
		return project(corev1.VolumeProjection{PodCertificate: &corev1.PodCertificateProjection{SignerName: signer,
			KeyType: "ED25519", KeyPath: "k"}})
	}
	const at = "spec.volumes[0].projected.sources[0]"
	const name, signer = at + ".clusterTrustBundle.name", at + ".clusterTrustBundle.signerName"
	invalid := func(path, value, message string) []string {
		return []string{path + `: Invalid value: "` + value + `": ` + message}
	}
	runAll(t, []row{
		{name: "name", change: byName("a.b-c")},
		{name: "longest name", change: byName(long)},
		{name: "longer name", change: byName(long + "n"), want: invalid(name, long+"n", tooLongName)},
		{name: "upper case", change: byName("A"), want: invalid(name, "A", notASub)},
		{name: "a slash", change: byName("e.io/s"), want: invalid(name, "e.io/s", notASub)},
		{name: "a signer's", change: byName("e.io:s:a.b")},
		{name: "a signer's longest", change: byName("e.io:s:" + long)},
		{name: "a signer's longer", change: byName("e.io:s:" + long + "n"),
			want: invalid(name, "e.io:s:"+long+"n", tooLongName)},
		{name: "a signer's without more", change: byName("e.io:s:"), want: invalid(name, "e.io:s:", notASub)},
		{name: "nobody's", change: byName(":a"), want: invalid(name, ":a",
			`must not contain ":", as the names of signers' bundles do: there is no signerName`)},
		{name: "signer", change: bySigner("e.io/s")},
		{name: "signer with the longest part", change: bySigner("e.io/" + long)},
		{name: "signer with a longer part", change: bySigner("e.io/" + long + "n"),
			want: invalid(signer, long+"n", `validating label "`+long+`n": `+tooLongName)},
		{name: "the longest signer", change: bySigner(longest)},
		{name: "a longer signer", change: bySigner(longest + ".n"),
			want: []string{signer + ": Too long: may not be more than 571 bytes"}},
		{name: "signer without a path", change: bySigner("e.io"), want: invalid(signer, "e.io", notASigner)},
		{name: "signer with two", change: bySigner("e.io/s/t"), want: invalid(signer, "e.io/s/t", notASigner)},
		{name: "signer of one label", change: bySigner("io/s"), want: invalid(signer, "io",
			"should be a domain with at least two segments separated by dots")},
		{name: "signer of the longest label", change: bySigner(label + ".io/s")},
		{name: "signer of a longer label", change: bySigner(label + "n.io/s"), want: invalid(signer, label+"n.io",
			`validating label "`+label+`n": must be no more than 63 characters`)},
		{name: "neither", change: bundle(func(*corev1.ClusterTrustBundleProjection) {}),
			want: []string{at + ".clusterTrustBundle: Required value: either name or signerName must be specified"}},
		{name: "labels beside a name", change: bundle(func(b *corev1.ClusterTrustBundleProjection) {
			b.Name, b.LabelSelector = ptr.To("a"), &metav1.LabelSelector{}
		}), want: []string{at + ".clusterTrustBundle.labelSelector: Invalid value: {}: labelSelector must be unset " +
			"if name is specified"}},
		{name: "no path", change: bundle(func(b *corev1.ClusterTrustBundleProjection) {
			b.Name, b.Path = ptr.To("a"), ""
		}), want: []string{at + ".clusterTrustBundle.path: Required value"}},
		{name: "certificate", change: certificate("e.io/s")},
		{name: "certificate of no signer", change: certificate(""),
			want: []string{at + ".podCertificate.signerName: Required value"}},
		{name: "certificate of a malformed one", change: certificate("s"),
			want: invalid(at+".podCertificate.signerName", "s", notASigner)},
	})
}

// What is wrong with names.
const (
	tooLongName = "must be no more than 253 characters"
	notASigner  = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
)
