package applet

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// archive is tar as kubectl cp calls it: "tar cf - PATH..." and "tar -xmf - -C DIR", with or without dashes.
func archive(args []string, s Streams) error {
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		args = append([]string{"-" + args[0]}, args[1:]...)
	}
	set, paths, err := tarOptions(args)
	if err != nil {
		return err
	}
	file := set['f']
	switch {
	case set['c'] != "":
		return createArchive(file, set['C'], paths, s)
	case set['x'] != "", set['t'] != "":
		return readArchive(file, set, s)
	}
	return errors.New("one of -c, -x and -t must say what to do")
}

// tarOptions also finds options behind file names, and the long ones that kubectl gives.
func tarOptions(args []string) (map[rune]string, []string, error) {
	all, paths := map[rune]string{}, []string(nil)
	for len(args) > 0 {
		if args[0] == "--no-same-permissions" || args[0] == "--no-same-owner" {
			args = args[1:]
			continue
		}
		if !strings.HasPrefix(args[0], "-") {
			paths, args = append(paths, args[0]), args[1:]
			continue
		}
		set, rest, err := options(args, "cxtmpov", "fC")
		if err != nil {
			return nil, nil, err
		}
		for letter, value := range set {
			all[letter] = value
		}
		args = rest
	}
	return all, paths, nil
}

func createArchive(file, dir string, paths []string, s Streams) error {
	out := s.Out
	if file != "" && file != "-" {
		created, err := os.Create(file)
		if err != nil {
			return err
		}
		defer created.Close()
		out = created
	}
	writer := tar.NewWriter(out)
	for _, path := range paths {
		err := filepath.WalkDir(filepath.Join(dir, path), func(name string, _ fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			return addFile(writer, dir, name)
		})
		if err != nil {
			return err
		}
	}
	return writer.Close()
}

func addFile(writer *tar.Writer, dir, name string) error {
	info, err := os.Lstat(name)
	if err != nil {
		return err
	}
	link := ""
	if info.Mode()&fs.ModeSymlink != 0 {
		if link, err = os.Readlink(name); err != nil {
			return err
		}
	}
	header, err := tar.FileInfoHeader(info, link)
	if err != nil {
		return err
	}
	stored := name
	if dir != "" {
		if stored, err = filepath.Rel(dir, name); err != nil {
			return err
		}
	}
	header.Name = strings.TrimPrefix(stored, "/")
	if info.IsDir() {
		header.Name += "/"
	}
	if err := writer.WriteHeader(header); err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return nil
	}
	content, err := os.Open(name)
	if err != nil {
		return err
	}
	defer content.Close()
	_, err = io.Copy(writer, content)
	return err
}

func readArchive(file string, set map[rune]string, s Streams) error {
	in := s.In
	if file != "" && file != "-" {
		opened, err := os.Open(file)
		if err != nil {
			return err
		}
		defer opened.Close()
		in = opened
	}
	dir := set['C']
	if dir == "" {
		dir = "."
	}
	root, err := os.OpenRoot(dir) // a name that leads out of the folder is refused
	if err != nil {
		return err
	}
	defer root.Close()
	for reader := tar.NewReader(in); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if set['t'] != "" {
			fmt.Fprintln(s.Out, header.Name)
			continue
		}
		if err := extract(root, header, reader); err != nil {
			return fmt.Errorf("extracting %s: %w", header.Name, err)
		}
	}
}

func extract(root *os.Root, header *tar.Header, content io.Reader) error {
	name := filepath.Clean(strings.TrimPrefix(header.Name, "/"))
	if header.Typeflag == tar.TypeDir {
		return root.MkdirAll(name, 0o755)
	}
	if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	switch header.Typeflag {
	case tar.TypeSymlink:
		if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return root.Symlink(header.Linkname, name)
	case tar.TypeReg:
		file, err := root.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, header.FileInfo().Mode().Perm())
		if err != nil {
			return err
		}
		_, err = io.Copy(file, content)
		return errors.Join(err, file.Close())
	}
	return fmt.Errorf("unsupported entry type %q", header.Typeflag)
}
