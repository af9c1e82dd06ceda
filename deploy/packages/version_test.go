package main

import (
	"os/exec"
	"testing"
	"time"
)

var noon = time.Date(2026, time.November, 27, 12, 0, 0, 0, time.UTC)

func TestPackageVersion(t *testing.T) {
	for description, want := range map[string]string{
		"v1.2.3":                      "1.2.3",
		"1.2":                         "1.2",
		"v1.2.3-dirty":                "1.2.3+dirty",
		"v1.2.3-14-gabc1234":          "1.2.3+14.gabc1234",
		"v1.2.3-14-gabc1234-dirty":    "1.2.3+14.gabc1234+dirty",
		"v1.2.3-rc.1":                 "1.2.3~rc.1",
		"v1.2.3-rc-1":                 "1.2.3~rc.1",
		"v1.2.3-rc.1-2-gabc1234":      "1.2.3~rc.1+2.gabc1234",
		"abc1234":                     "0~20261127120000.gabc1234",
		"12345678":                    "0~20261127120000.g12345678",
		"abc1234-dirty":               "0~20261127120000.gabc1234+dirty",
		"":                            "",
		"unknown":                     "",
		"v1.2.3 ":                     "",
		"release-1":                   "",
		"v1.2.3\nDepends: everything": "",
	} {
		got, err := packageVersion(description, noon)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v; want %q", description, got, err, want)
		}
	}
}

// TestVersionsSortAsCommitsDo asks dpkg, whose rules for what packageVersion makes are rpm's too.
func TestVersionsSortAsCommitsDo(t *testing.T) {
	if _, err := exec.LookPath("dpkg"); err != nil {
		t.Skip("there is no dpkg here")
	}
	var last string
	for i, description := range []string{"abc1234", "0bc1234", "v0.1.0-rc.1", "v0.1.0-rc.1-3-gabc1234", "v0.1.0-rc.2",
		"v0.1.0", "v0.1.0-9-gabc1234", "v0.1.0-14-g0bc1234", "v0.1.1"} {
		version, err := packageVersion(description, noon.Add(time.Duration(i)*time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		if out, err := exec.CommandContext(
			t.Context(),
			"dpkg",
			"--validate-version",
			version,
		).CombinedOutput(); err != nil {
			t.Errorf("%s: %v %s", version, err, out)
		}
		if last != "" &&
			exec.CommandContext(t.Context(), "dpkg", "--compare-versions", last, "lt", version).Run() != nil {
			t.Errorf("%s is not before %s", last, version)
		}
		last = version
	}
}
