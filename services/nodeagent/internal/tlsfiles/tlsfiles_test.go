package tlsfiles

import (
	"bytes"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"keelson.dev/services/nodeagent/internal/pairtest"
)

// made returns a self-signed certificate and its key, in PEM.
func made(t *testing.T, name string) (certificate, key []byte) {
	t.Helper()
	return pairtest.Sign(t, &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotAfter: time.Now().Add(time.Hour)}, nil, nil)
}

// folder is a folder with followed files.
type folder struct {
	*testing.T
	dir  string
	log  *zap.Logger
	told *observer.ObservedLogs
}

func newFolder(t *testing.T) *folder {
	core, told := observer.New(zap.InfoLevel)
	return &folder{t, t.TempDir(), zap.New(core), told}
}

func (f *folder) path(name string) string { return filepath.Join(f.dir, name) }

func (f *folder) write(name string, content []byte) {
	f.Helper()
	if err := os.WriteFile(f.path(name), content, 0o600); err != nil {
		f.Fatal(err)
	}
}

// tells fails the test unless exactly these lines were logged since the last call.
func (f *folder) tells(levelsAndTexts ...string) {
	f.Helper()
	all := f.told.TakeAll()
	if len(all) != len(levelsAndTexts) {
		f.Errorf("it told %v, want %q", all, levelsAndTexts)
		return
	}
	for i, want := range levelsAndTexts {
		text := all[i].Level.String() + " " + all[i].Message
		if reason, ok := all[i].ContextMap()["error"].(string); ok {
			text += ": " + reason
		}
		if !strings.Contains(text, want) || all[i].ContextMap()["flag"] != "--flag" {
			f.Errorf("it told %s %v, want %q", text, all[i].ContextMap(), want)
		}
	}
}

const (
	taken   = "info the files have changed and are in force"
	refused = "warn the files are not in force; what they had before is: "
)

// A pair whose files were replaced counts at the next check, which is a second after the last one; unusable
// contents change nothing, and are reported once.
func TestPair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFolder(t)
		old, oldKey := made(t, "old")
		fresh, freshKey := made(t, "fresh")
		f.write("c", old)
		f.write("k", oldKey)
		pair, err := Pair("flag", f.path("c"), f.path("k"), f.log)
		if err != nil {
			t.Fatal(err)
		}
		shows := func(want []byte) {
			t.Helper()
			block, _ := pem.Decode(want)
			if got := pair.Current().Certificate[0]; !bytes.Equal(got, block.Bytes) {
				t.Error("it shows another certificate")
			}
		}
		shows(old)
		f.write("c", fresh)
		<-time.After(pause - 1)
		shows(old)
		f.tells()
		<-time.After(1)
		shows(old) // its key is not there yet
		f.tells(refused + f.path("c") + " and " + f.path("k") + " hold no certificate with its key: ")
		<-time.After(pause)
		shows(old)
		f.tells()
		f.write("k", freshKey)
		<-time.After(pause)
		shows(fresh)
		f.tells(taken)

		if err := os.Remove(f.path("k")); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			<-time.After(pause)
			shows(fresh)
		}
		f.tells(refused + "open " + f.path("k"))
		f.write("k", freshKey)
		<-time.After(pause)
		shows(fresh)
		f.tells()
		if err := os.Remove(f.path("k")); err != nil {
			t.Fatal(err)
		}
		<-time.After(pause)
		shows(fresh)
		f.tells(refused + "open " + f.path("k")) // again: it was there meanwhile
	})
}

// A bundle is followed through links, as in a volume of a Secret, and one without a certificate is not used.
func TestAuthorities(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFolder(t)
		old, _ := made(t, "old")
		fresh, _ := made(t, "fresh")
		f.write("1", old)
		if err := os.Symlink("1", f.path("ca")); err != nil {
			t.Fatal(err)
		}
		bundle, err := Authorities("flag", f.path("ca"), f.log)
		if err != nil {
			t.Fatal(err)
		}
		believes := func(want ...[]byte) {
			t.Helper()
			pool := x509.NewCertPool()
			for _, certificate := range want {
				pool.AppendCertsFromPEM(certificate)
			}
			if !bundle.Current().Equal(pool) {
				t.Error("it believes others")
			}
		}
		believes(old)
		f.write("2", append(old, fresh...))
		if err := os.Symlink("2", f.path("new")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(f.path("new"), f.path("ca")); err != nil {
			t.Fatal(err)
		}
		<-time.After(pause)
		believes(old, fresh)
		f.tells(taken)
		f.write("2", []byte("none"))
		<-time.After(pause)
		believes(old, fresh)
		f.tells(refused + f.path("ca") + " holds no PEM certificate")
		f.write("2", fresh)
		<-time.After(pause)
		believes(fresh)
		f.tells(taken)
	})
}

// Unusable files at the start are refused in one sentence with the flag.
func TestOpenRefuses(t *testing.T) {
	f := newFolder(t)
	certificate, key := made(t, "c")
	_, other := made(t, "other")
	f.write("c", certificate)
	f.write("k", key)
	f.write("other", other)
	f.write("empty", nil)
	for _, row := range []struct{ certificate, key, want string }{
		{"c", "k", ""},
		{"c", "none", "--flag: open " + f.path("none")},
		{"none", "k", "--flag: open " + f.path("none")},
		{"c", "other", "--flag: " + f.path("c") + " and " + f.path("other") + " hold no certificate with its key: "},
		{"empty", "k", "--flag: " + f.path("empty") + " and "},
	} {
		_, err := Pair("flag", f.path(row.certificate), f.path(row.key), f.log)
		if row.want == "" && err != nil || row.want != "" && (err == nil || !strings.HasPrefix(err.Error(), row.want)) {
			t.Errorf("%s, %s: %v, want %q", row.certificate, row.key, err, row.want)
		}
	}
	for bundle, want := range map[string]string{
		"none": "--flag: open " + f.path("none"), "empty": "--flag: " + f.path("empty") + " holds no PEM certificate",
		"k": "--flag: " + f.path("k") + " holds no PEM certificate",
	} {
		if _, err := Authorities("flag", f.path(bundle), f.log); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %q", bundle, err, want)
		}
	}
}
