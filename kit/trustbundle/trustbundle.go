// Package trustbundle reads the certificates, in PEM, that a ClusterTrustBundle holds. Who serves a bundle, who
// publishes one and who shows it to containers read it alike.
//
//keelson:decision
package trustbundle

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"iter"
	"strings"

	"k8s.io/apimachinery/pkg/api/validation"
)

const (
	// MaxSize is how many bytes a bundle has at most.
	MaxSize = 1 << 20
	// BlockType is that of each PEM block.
	BlockType = "CERTIFICATE"
	// KubeAPIServerServing is the signer of the bundle by which the apiserver's own certificate is known.
	KubeAPIServerServing = "kubernetes.io/kube-apiserver-serving"

	// mostComplaints is how many entries are complained about: a bundle may have many thousand.
	mostComplaints = 10
)

// NamePrefix is what the names of a signer's bundles begin with: no name has a slash.
func NamePrefix(signer string) string { return strings.ReplaceAll(signer, "/", ":") + ":" }

// SignerOf is the signer whose bundle has the name, empty for a bundle of none.
func SignerOf(name string) string {
	i := strings.LastIndex(name, ":")
	return strings.ReplaceAll(name[:max(i, 0)], ":", "/")
}

// CheckName says what is wrong with the name of a bundle of the signer; empty if the bundle has none. The name says
// whose it is.
func CheckName(name, signer string) []string {
	if signer == "" && strings.Contains(name, ":") {
		return []string{`must not contain ":", as the names of signers' bundles do: there is no signerName`}
	}
	if signer != "" {
		prefix := NamePrefix(signer)
		rest, its := strings.CutPrefix(name, prefix)
		if !its {
			return []string{fmt.Sprintf("must begin with %q, as the names of all bundles of the signer %s", prefix,
				signer)}
		}
		name = rest
	}
	return validation.NameIsDNSSubdomain(name, false)
}

// Blocks yields the PEM blocks of a bundle, of any type and content. It skips the text around them, which is for
// people.
func Blocks(text string) iter.Seq[*pem.Block] {
	return func(yield func(*pem.Block) bool) {
		for rest := []byte(text); ; {
			var block *pem.Block
			if block, rest = pem.Decode(rest); block == nil || !yield(block) {
				return
			}
		}
	}
}

// Check says what is wrong with a bundle: with each of its blocks or, where every one is right, with all of them. It
// ends after the first few that are wrong.
func Check(text string) []string {
	var wrong []string
	entries := 0
	first, twice := map[string]int{}, []string(nil)
	for block := range Blocks(text) {
		if len(wrong) == mostComplaints || len(twice) == mostComplaints {
			break
		}
		entry := entries
		entries++
		if problem := checkBlock(block); problem != "" {
			wrong = append(wrong, fmt.Sprintf("entry %d %s", entry, problem))
			continue
		}
		if before, known := first[string(block.Bytes)]; known {
			twice = append(twice, fmt.Sprintf("entry %d is the certificate of entry %d again", entry, before))
			continue
		}
		first[string(block.Bytes)] = entry
	}
	switch {
	case len(wrong) > 0:
		return wrong
	case entries == 0:
		return []string{"must hold at least one PEM block of type " + BlockType}
	}
	return twice
}

// checkBlock says what is wrong with a block that is to be the certificate of an authority.
func checkBlock(block *pem.Block) string {
	if block.Type != BlockType {
		return fmt.Sprintf("must be a PEM block of type %s, not %q", BlockType, block.Type)
	}
	if len(block.Headers) > 0 {
		return "must be a PEM block without headers"
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return "must be an X.509 certificate: " + err.Error()
	}
	if !certificate.BasicConstraintsValid || !certificate.IsCA {
		return "must be the certificate of an authority: its basic constraints do not say CA"
	}
	return ""
}
