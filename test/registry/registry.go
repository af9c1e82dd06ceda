// Package registry serves one image of this repository as a registry does, for tests of how nodes get images.
package registry

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
)

// Media types of the OCI image specification.
const (
	manifestType = "application/vnd.oci.image.manifest.v1+json"
	configType   = "application/vnd.oci.image.config.v1+json"
	layerType    = "application/vnd.oci.image.layer.v1.tar"
)

// Registry serves an image under any name and tag. It implements http.Handler.
type Registry struct {
	// User and Password are asked for, unless they are empty.
	User, Password string

	manifest string // the digest
	content  map[string]content
}

type content struct {
	kind string
	data []byte
}

// descriptor is how a manifest refers to what belongs to it.
type descriptor struct {
	MediaType string `json:"mediaType"`
	Digest    string `json:"digest"`
	Size      int    `json:"size"`
}

// Open reads the image from a docker archive.
func Open(archive string) (*Registry, error) {
	files, err := read(archive)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", archive, err)
	}
	var images []struct {
		Config string
		Layers []string
	}
	if err := json.Unmarshal(files["manifest.json"], &images); err != nil || len(images) != 1 {
		return nil, fmt.Errorf("reading the manifest of %s: %d images, %w", archive, len(images), err)
	}
	r := &Registry{content: map[string]content{}}
	layers := []descriptor{}
	for _, layer := range images[0].Layers {
		layers = append(layers, r.add(layerType, files[layer]))
	}
	manifest, err := json.Marshal(map[string]any{"schemaVersion": 2, "mediaType": manifestType,
		"config": r.add(configType, files[images[0].Config]), "layers": layers})
	if err != nil {
		return nil, fmt.Errorf("making the manifest: %w", err)
	}
	r.manifest = r.add(manifestType, manifest).Digest
	return r, nil
}

// read returns the files of an archive.
func read(archive string) (map[string][]byte, error) {
	file, err := os.Open(archive)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	files := map[string][]byte{}
	for from := tar.NewReader(file); ; {
		header, err := from.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		if files[header.Name], err = io.ReadAll(from); err != nil {
			return nil, err
		}
	}
}

// add keeps content under its digest.
func (r *Registry) add(kind string, data []byte) descriptor {
	sum := sha256.Sum256(data)
	digest := "sha256:" + hex.EncodeToString(sum[:])
	r.content[digest] = content{kind, data}
	return descriptor{MediaType: kind, Digest: digest, Size: len(data)}
}

// ServeHTTP answers pulls, as the OCI distribution specification has them.
func (r *Registry) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	if user, password, _ := request.BasicAuth(); r.User != "" && (user != r.User || password != r.Password) {
		w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
		http.Error(w, "who are you?", http.StatusUnauthorized)
		return
	}
	if request.URL.Path == "/v2/" {
		return
	}
	words := strings.Split(request.URL.Path, "/")
	which := words[len(words)-1]
	if words[len(words)-2] == "manifests" && !strings.Contains(which, ":") {
		which = r.manifest
	}
	found, ok := r.content[which]
	if !ok {
		http.NotFound(w, request)
		return
	}
	w.Header().Set("Content-Type", found.kind)
	w.Header().Set("Docker-Content-Digest", which)
	w.Header().Set("Content-Length", strconv.Itoa(len(found.data)))
	if request.Method != http.MethodHead {
		_, _ = w.Write(found.data) // who has gone needs no answer
	}
}
