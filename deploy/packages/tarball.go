package main

import (
	"archive/tar"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	"github.com/goreleaser/nfpm/v2/files"
)

// tarFormat is the tarball in packages.yaml.
const tarFormat = "tar"

// programs is the folder of the programs in the other packages.
const programs = "/usr/lib/keelson/bin/"

// moved are the folders of the other packages that the tarball has, with their names there.
var moved = map[string]string{"/usr/lib/keelson/": "", "/usr/share/": "share/"}

// inTarball is the name in the tarball of what other packages have at a place, if it is there.
func inTarball(place string) (string, bool) {
	for from, to := range moved {
		if rest, ok := strings.CutPrefix(place, from); ok && to+rest != "" {
			return to + rest, true
		}
	}
	return "", false
}

// tarFolder is the one that the tarball unpacks into: in /opt it is where docs/how-to/init.md has it, whatever the
// version.
const tarFolder = "keelson"

// writeTarball makes the tarball and returns its name.
func (in input) writeTarball(config *nfpm.Config) (string, error) {
	contents, err := in.contents(config, tarFormat)
	if err != nil {
		return "", err
	}
	name := fmt.Sprintf("keelson-%s-linux-%s.tar.gz", config.Version, config.Arch)
	return name, writeFile(filepath.Join(in.out, name), func(file *os.File) error {
		packed := gzip.NewWriter(file)
		archive := tar.NewWriter(packed)
		for _, content := range contents {
			if err := in.add(archive, content); err != nil {
				return err
			}
		}
		if err := archive.Close(); err != nil {
			return err
		}
		return packed.Close()
	})
}

// add adds one file or folder to the tarball. Of what lies in its folder nothing is a link.
func (in input) add(archive *tar.Writer, content *files.Content) error {
	name, there := inTarball(content.Destination)
	if !there {
		return nil
	}
	header := &tar.Header{Name: path.Join(tarFolder, name), Mode: int64(content.FileInfo.Mode.Perm()), Uname: "root",
		Gname: "root", ModTime: in.committed, Typeflag: tar.TypeReg, Size: content.FileInfo.Size, Format: tar.FormatPAX}
	switch content.Type {
	case files.TypeDir, files.TypeImplicitDir:
		header.Typeflag, header.Size, header.Name = tar.TypeDir, 0, header.Name+"/"
		return archive.WriteHeader(header)
	case files.TypeFile:
	default:
		return fmt.Errorf("%s is a %s, which the tarball has none of", content.Destination, content.Type)
	}
	if err := archive.WriteHeader(header); err != nil {
		return err
	}
	file, err := os.Open(content.Source)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = io.Copy(archive, file)
	return err
}
