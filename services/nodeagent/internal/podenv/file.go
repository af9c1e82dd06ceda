package podenv

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// File is a file in one of the Pod's emptyDir volumes.
type File struct{ Volume, Path string }

// Files returns the files from which variables of the container are taken.
func Files(container *corev1.Container) []File {
	var out []File
	for i := range container.Env {
		if from := container.Env[i].ValueFrom; from != nil && from.FileKeyRef != nil {
			out = append(out, fileOf(from.FileKeyRef))
		}
	}
	return out
}

func fileOf(ref *corev1.FileKeySelector) File { return File{Volume: ref.VolumeName, Path: ref.Path} }

// fileKey returns the value of a key in a file; ok is false if the file or the key is missing and optional.
func (in Input) fileKey(ref *corev1.FileKeySelector) (value string, ok bool, err error) {
	file, optional := in.Files[fileOf(ref)], ptr.Deref(ref.Optional, false)
	switch {
	case file.Value == nil && optional && errors.Is(file.Err, fs.ErrNotExist):
		return "", false, nil
	case file.Value == nil && file.Err == nil:
		file.Err = fs.ErrNotExist
		fallthrough
	case file.Value == nil:
		return "", false, fmt.Errorf("couldn't read file %s of volume %s: %w", ref.Path, ref.VolumeName, file.Err)
	}
	value, ok, err = variableOf(*file.Value, ref.Key)
	switch {
	case err != nil:
		return "", false, fmt.Errorf("file %s of volume %s: %w", ref.Path, ref.VolumeName, err)
	case !ok && !optional:
		return "", false, fmt.Errorf("couldn't find key %s in file %s of volume %s", ref.Key, ref.Path, ref.VolumeName)
	}
	return value, ok, nil
}

// variableOf returns the first value of a variable in the text of an environment file. Such a file is read no further
// than that. It is what a POSIX shell reads (Kubernetes task page "Define Environment Variable Values Using An Init
// Container"): lines NAME='value', with the value in single quotes, which may go on for more lines and is taken as it
// is. Empty lines and comments may come between them, a comment after a value; NAME= with nothing after it is empty.
func variableOf(text, name string) (value string, ok bool, err error) {
	f := envFile{rest: text}
	for f.rest != "" {
		has, value, err := f.next()
		if err != nil {
			return "", false, fmt.Errorf("line %d: %w", f.line, err)
		}
		if has == name {
			return value, true, nil
		}
	}
	return "", false, nil
}

// envFile is the rest of an environment file, and the number of the line that was last read.
type envFile struct {
	rest string
	line int
}

// cut removes and returns the text up to the next line.
func (f *envFile) cut() string {
	line, rest, _ := strings.Cut(f.rest, "\n")
	f.rest, f.line = rest, f.line+1
	return line
}

const blank = " \t\r"

// next reads one variable; the name is empty if the line has none.
func (f *envFile) next() (name, value string, err error) {
	line := strings.TrimLeft(f.cut(), blank)
	if isComment(line) {
		return "", "", nil
	}
	name, value, found := strings.Cut(line, "=")
	switch {
	case !found || name == "" || strings.ContainsAny(name, blank):
		return "", "", errors.New("it must be NAME='value', without blanks before the equals sign")
	case value == "", strings.ContainsAny(value[:1], blank):
		return name, "", nil
	case value[0] != '\'':
		return "", "", fmt.Errorf("the value of %s must be in single quotes", name)
	}
	return f.quoted(name, value[1:])
}

// quoted reads the value that begins on the line, from after its first quote.
func (f *envFile) quoted(name, begun string) (string, string, error) {
	first := f.line
	var value strings.Builder
	for {
		part, behind, closed := strings.Cut(begun, "'")
		value.WriteString(part)
		switch {
		case closed && !isComment(strings.Trim(behind, blank)):
			return "", "", fmt.Errorf("nothing but a comment may follow the value of %s", name)
		case closed:
			return name, value.String(), nil
		case f.rest == "":
			f.line = first
			return "", "", fmt.Errorf("the value of %s has no closing quote", name)
		}
		value.WriteByte('\n')
		begun = f.cut()
	}
}

// isComment reports whether a shell ignores the text.
func isComment(text string) bool { return text == "" || text[0] == '#' }
