package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// found are the notices of the modules of this test, which is a program of Go's.
func found(t *testing.T, find func(n *notices, program []byte) error) *notices {
	t.Helper()
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(own)
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "go", "env", "GOMODCACHE", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	folders := strings.Fields(string(out))
	n := &notices{cache: folders[0], goroot: folders[1], modules: map[string]string{}}
	if err := find(n, program); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestLicencesOfModules(t *testing.T) {
	n := found(t, func(n *notices, program []byte) error { return n.find(program) })
	text, err := n.text()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\nGo\n", "\ngithub.com/goreleaser/nfpm/v2 v", "\ngithub.com/ProtonMail/go-crypto v",
		"Redistribution and use in source and binary forms", "Permission is hereby granted, free of charge"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%q is missing", want)
		}
	}
	if strings.Contains(string(text), "keelson.dev") {
		t.Error("our own modules are among those of others")
	}
}

func TestLicencesOfProgramsInImages(t *testing.T) {
	image := func(n *notices, program []byte) error {
		layer := archived(t, map[string][]byte{"bin/program": program, "etc/hosts": []byte("127.0.0.1 localhost")})
		var packed bytes.Buffer
		writer := gzip.NewWriter(&packed)
		if _, err := writer.Write(layer); err != nil {
			t.Fatal(err)
		}
		if err := writer.Close(); err != nil {
			t.Fatal(err)
		}
		return n.find(archived(t, map[string][]byte{"manifest.json": []byte("[]"), "layer": packed.Bytes()}))
	}
	direct := found(t, func(n *notices, program []byte) error { return n.find(program) })
	if inside := found(t, image); len(inside.modules) != len(direct.modules) || len(inside.modules) < 5 {
		t.Errorf("in an image there are %d modules, and %d in the program itself", len(inside.modules),
			len(direct.modules))
	}
}

func archived(t *testing.T, files map[string][]byte) []byte {
	t.Helper()
	var out bytes.Buffer
	archive := tar.NewWriter(&out)
	for name, content := range files {
		if err := archive.WriteHeader(&tar.Header{Name: name, Size: int64(len(content)), Mode: 0o644}); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestModuleWithoutLicenceIsNamed(t *testing.T) {
	n := found(t, func(*notices, []byte) error { return nil })
	n.cache = t.TempDir()
	n.modules["example.com/!free@v1.0.0"] = "example.com/Free v1.0.0"
	if err := os.MkdirAll(n.cache+"/example.com/!free@v1.0.0", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(n.cache+"/example.com/!free@v1.0.0/licenser.go", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := n.text(); err == nil || !strings.Contains(err.Error(), "example.com/Free v1.0.0") {
		t.Errorf("got %v", err)
	}
}
