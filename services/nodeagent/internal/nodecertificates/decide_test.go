package nodecertificates

import (
	"bytes"
	"crypto/x509"
	"slices"
	"strings"
	"testing"
	"time"
)

var day = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// A pair that the node cannot use is refused with the reason.
func TestJudge(t *testing.T) {
	mesh := newAuthority(t)
	good := mesh.pair(t, leaf("n", day.Add(-time.Hour), day.Add(time.Second)))
	other := mesh.pair(t, leaf("n", day.Add(-time.Hour), day.Add(time.Hour)))
	for _, row := range []struct {
		name string
		pair []byte
		want string // the error; empty: none
	}{
		{"a second before its end", good, ""},
		{"at its end", mesh.pair(t, leaf("n", day.Add(-time.Hour), day)),
			"the certificate has expired at 2026-03-01T12:00:00Z"},
		{"that begins later", mesh.pair(t, leaf("n", day.Add(time.Minute), day.Add(time.Hour))), ""},
		{"for any use", mesh.pair(t, with(leaf("n", day, day.Add(time.Hour)), x509.ExtKeyUsageAny)), ""},
		{"for no use in particular", mesh.pair(t, with(leaf("n", day, day.Add(time.Hour)))), ""},
		{"of a server", mesh.pair(t, with(leaf("n", day, day.Add(time.Hour)), x509.ExtKeyUsageServerAuth)),
			"the certificate is for another use"},
		{"of another node", mesh.pair(t, leaf("n2", day, day.Add(time.Hour))),
			`the certificate is of "system:node:n2", not of "system:node:n"`},
		{"of another group", mesh.pair(t, grouped(leaf("n", day, day.Add(time.Hour)), "nodes")),
			"the certificate is not of the group system:nodes"},
		{"with one more group", mesh.pair(t, grouped(leaf("n", day, day.Add(time.Hour)), "a", group)), ""},
		{"nothing", nil, "there is no certificate with a key"},
		{"cut off", good[:len(good)-40], "the certificate or its key is damaged"},
		{"no PEM", []byte("hello"), "the certificate or its key is damaged"},
		{"without its key", good[:bytes.Index(good, []byte("-----BEGIN EC"))], "the certificate or its key is damaged"},
		{"with the key of another", slices.Concat(good[:bytes.Index(good, []byte("-----BEGIN EC"))],
			other[bytes.Index(other, []byte("-----BEGIN EC")):]), "the certificate or its key is damaged"},
	} {
		_, err := judge(row.pair, "n", x509.ExtKeyUsageClientAuth, day)
		if row.want == "" && err != nil || row.want != "" && (err == nil || !strings.HasPrefix(err.Error(), row.want)) {
			t.Errorf("%s: %v, want %q", row.name, err, row.want)
		}
	}
}

// An agent starts with the newest usable pair, and requests one only if it may and has none.
func TestDecide(t *testing.T) {
	mesh := newAuthority(t)
	older := mesh.pair(t, leaf("n", day.Add(-2*time.Hour), day.Add(time.Hour)))
	newer := mesh.pair(t, leaf("n", day.Add(-time.Hour), day.Add(time.Hour)))
	expired := mesh.pair(t, leaf("n", day.Add(-time.Hour), day))
	elsewhere := mesh.pair(t, leaf("n2", day, day.Add(time.Hour)))
	somebody := mesh.pair(t, named(leaf("n", day, day.Add(time.Hour)), "ann"))
	past := mesh.pair(t, named(leaf("n", day.Add(-time.Hour), day), "ann"))
	const bootstrap, rotate = "bootstrap", "rotate"
	type row struct {
		name          string
		named, stored []byte
		flags         string
		want          source
		reason        string
	}
	rows := []row{
		{"good, nothing to do", newer, nil, bootstrap, asGiven, ""},
		{"good, a newer one stored, nothing renewed", older, newer, bootstrap, asGiven, ""},
		{"good, first renewal", older, nil, rotate, seeded, ""},
		{"good, the stored one is newer", older, newer, rotate, fromStore, ""},
		{"good, the stored one is the same", newer, newer, rotate, fromStore, ""},
		{"good, newer than the stored one", newer, older, rotate, seeded, ""},
		{"good, the stored one is of no use", older, expired, rotate, seeded, ""},
		{"good, the stored one is damaged", older, newer[1:], rotate, seeded, ""},
		{"expired, a good one stored", expired, older, rotate, fromStore, "expired"},
		{"expired, a good one stored, nothing renewed", expired, older, bootstrap, fromStore, "expired"},
		{"expired, nothing else", expired, nil, bootstrap, asked, "expired"},
		{"expired both", expired, expired, bootstrap + rotate, asked, "expired"},
		{"expired, no way to ask", expired, nil, rotate, asGiven, "expired"},
		{"of another node", elsewhere, nil, bootstrap, asked, `not of "system:node:n"`},
		{"of another node, no way to ask", elsewhere, nil, rotate, asGiven, `not of "system:node:n"`},
		{"gone", nil, nil, bootstrap, asked, "no certificate"},
		{"damaged", newer[1:], nil, bootstrap, asked, "damaged"},
		{"of somebody who is no node", somebody, newer, bootstrap + rotate, asGiven, ""},
		{"of somebody who is no node, expired", past, nil, bootstrap + rotate, asGiven, ""},
	}
	run := func(name string, in found, want source, reason string) {
		from, err := decide(in)
		if from != want || (err == nil) != (reason == "") || err != nil && !strings.Contains(err.Error(), reason) {
			t.Errorf("%s: %s, %v; want %s, %q", name, from, err, want, reason)
		}
	}
	for _, r := range rows {
		in := found{Node: "n", Now: day, Kubeconfig: true, NamesPair: true, Named: r.named, Stored: r.stored,
			Bootstrap: strings.Contains(r.flags, bootstrap), Rotate: strings.Contains(r.flags, rotate)}
		run(r.name, in, r.want, r.reason)
	}
	run("a token", found{Node: "n", Now: day, Kubeconfig: true, Stored: newer, Bootstrap: true, Rotate: true}, asGiven,
		"")
	run("a new start", found{Node: "n", Now: day, Stored: newer, Bootstrap: true, Rotate: true}, asked,
		"there is no kubeconfig")
}
