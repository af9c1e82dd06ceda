package nodecertificates

import (
	"bytes"
	"crypto/x509"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/util/certificate"

	"keelson.dev/kit/failpoint"
)

func openTest(t *testing.T, dir string) *store {
	t.Helper()
	s, err := openStore(dir, clientFile, "n", x509.ExtKeyUsageClientAuth)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// lasting is the certificate of node n for another hour.
func lasting() *x509.Certificate {
	return leaf("n", time.Now().Add(-time.Hour), time.Now().Add(time.Hour))
}

// An unusable pair counts as missing: the library then requests one, where it would give up otherwise.
func TestCurrent(t *testing.T) {
	mesh := newAuthority(t)
	s := openTest(t, filepath.Join(t.TempDir(), "made", "here"))
	none := (*certificate.NoCertKeyError)(nil)
	if _, err := s.Current(); !errors.As(err, &none) {
		t.Errorf("of nothing: %v", err)
	}
	pair, key := mesh.sign(t, lasting())
	if _, err := s.Update(pair, key); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Current(); err != nil || got.Leaf.Subject.CommonName != "system:node:n" {
		t.Errorf("%+v, %v", got, err)
	}
	if info, err := os.Stat(s.file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v, %v", info, err)
	}
	for name, content := range map[string][]byte{
		"expired":         mesh.pair(t, leaf("n", time.Now().Add(-time.Hour), time.Now().Add(-time.Minute))),
		"of another node": mesh.pair(t, leaf("m", time.Now(), time.Now().Add(time.Hour))),
		"cut off":         pair[:len(pair)-1], "empty": {},
	} {
		if err := os.WriteFile(s.file, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Current(); !errors.As(err, &none) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// An unusable pair replaces none, and an update that is interrupted anywhere leaves one complete pair.
func TestUpdate(t *testing.T) {
	mesh := newAuthority(t)
	dir := t.TempDir()
	s := openTest(t, dir)
	old, oldKey := mesh.sign(t, lasting())
	if _, err := s.Update(old, oldKey); err != nil {
		t.Fatal(err)
	}
	fresh, freshKey := mesh.sign(t, lasting())
	for name, pair := range map[string][2][]byte{
		"the key of another": {fresh, oldKey}, "no certificate": {nil, freshKey}, "no key": {fresh, nil},
	} {
		if _, err := s.Update(pair[0], pair[1]); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
	other, otherKey := mesh.sign(t, leaf("m", time.Now(), time.Now().Add(time.Hour)))
	if _, err := s.Update(other, otherKey); err == nil {
		t.Error("a certificate of another node is taken")
	}
	holds := func(want []byte) {
		t.Helper()
		if data, err := os.ReadFile(s.file); err != nil || !bytes.HasPrefix(data, want) {
			t.Errorf("it holds %q, %v", data, err)
		}
	}
	holds(old)
	for place, want := range map[string][]byte{"before": old, "after": fresh} {
		name := "nodeagent/certificate.write." + place
		if err := failpoint.Arm(name, "1*error(broken off)"); err != nil {
			t.Fatal(err)
		}
		_, err := s.Update(fresh, freshKey)
		failpoint.Disarm(name)
		if !errors.Is(err, failpoint.ErrInjected) {
			t.Errorf("%s: %v", place, err)
		}
		holds(want)
		if _, err := openTest(t, dir).Current(); err != nil {
			t.Errorf("%s: the next agent finds %v", place, err)
		}
		if _, err := s.Update(old, oldKey); err != nil {
			t.Fatal(err)
		}
	}
	left := filepath.Join(dir, "."+clientFile+"123")
	if err := os.WriteFile(left, fresh, 0o600); err != nil {
		t.Fatal(err)
	}
	openTest(t, dir)
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what a write that was cut off has left: %v", err)
	}
}
