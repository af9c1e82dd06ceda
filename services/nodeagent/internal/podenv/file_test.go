package podenv

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// The value of the variable A in an environment file.
func TestVariableOf(t *testing.T) {
	const form = "it must be NAME='value', without blanks before the equals sign"
	for text, want := range map[string]string{
		"A='b'":                     "b true",
		"A='b'\n":                   "b true",
		"A='b'\r\n":                 "b true",
		"\n  \t\n# A='c'\n \tA='b'": "b true",
		"A='b'\nA='c'":              "b true",
		"AA='b'":                    " false",
		"a='b'":                     " false",
		"":                          " false",
		"B='x'\nA='b' # comment":    "b true",
		"A=''":                      " true",
		"A=":                        " true",
		"A=\nB=c":                   " true",
		"A= 'b'":                    " true",
		"A='$B \\n \"c\" # d='":     "$B \\n \"c\" # d= true",
		"A='b \n  c\nA=d'\nA='e'":   "b \n  c\nA=d true",
		"A='b'\nthis is not read":   "b true",
		"B\nA='b'":                  "line 1: " + form,
		"\n='b'":                    "line 2: " + form,
		"A ='b'":                    "line 1: " + form,
		"export A='b'":              "line 1: " + form,
		"A=b":                       "line 1: the value of A must be in single quotes",
		"A=\"b\"":                   "line 1: the value of A must be in single quotes",
		"A='b' c":                   "line 1: nothing but a comment may follow the value of A",
		"B='\n'x\nA='b'":            "line 2: nothing but a comment may follow the value of B",
		"A='b":                      "line 1: the value of A has no closing quote",
		"\nA='b\n\n":                "line 2: the value of A has no closing quote",
	} {
		value, ok, err := variableOf(text, "A")
		got := fmt.Sprint(value, " ", ok)
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// A variable from a file is set, absent if it is optional, or keeps the container from starting.
func TestFileKey(t *testing.T) {
	ref := func(path, key string, optional *bool) corev1.EnvVar {
		return corev1.EnvVar{Name: "V", ValueFrom: from(corev1.EnvVarSource{FileKeyRef: &corev1.FileKeySelector{
			VolumeName: "vol", Path: path, Key: key, Optional: optional}})}
	}
	text := "A='b'"
	files := map[File]Object[string]{
		{"vol", "env"}:  {Value: &text},
		{"vol", "bad"}:  {Value: ptr.To("A=b")},
		{"vol", "none"}: {Err: fmt.Errorf("opening: %w", fs.ErrNotExist)},
		{"vol", "link"}: {Err: errors.New("not a regular file")},
	}
	yes := ptr.To(true)
	for name, row := range map[string]struct {
		env  corev1.EnvVar
		want string
	}{
		"there":                 {ref("env", "A", nil), "b true"},
		"no such key":           {ref("env", "B", nil), "couldn't find key B in file env of volume vol"},
		"no such key, optional": {ref("env", "B", yes), " false"},
		"no such file": {ref("none", "A", nil),
			"couldn't read file none of volume vol: opening: file does not exist"},
		"no such file, optional": {ref("none", "A", yes), " false"},
		"not looked for": {ref("other", "A", nil),
			"couldn't read file other of volume vol: file does not exist"},
		"no plain file, optional": {ref("link", "A", yes),
			"couldn't read file link of volume vol: not a regular file"},
		"no environment, optional": {ref("bad", "A", yes),
			"file bad of volume vol: line 1: the value of A must be in single quotes"},
	} {
		in := input(corev1.Container{Name: "c", Env: []corev1.EnvVar{row.env}})
		in.Files = files
		result, err := Resolve(in)
		value, ok := result.Lookup("V")
		got := fmt.Sprint(value, " ", ok)
		if err != nil {
			got = err.Error()
		}
		if got != row.want {
			t.Errorf("%s: %q, want %q", name, got, row.want)
		}
	}
	container := &corev1.Container{Env: []corev1.EnvVar{{Name: "X", Value: "y"}, ref("env", "A", nil),
		{Name: "M", ValueFrom: configMapKey("cm", "one", nil)}, ref("bad", "A", nil)}}
	if got := Files(container); len(got) != 2 || got[0] != (File{"vol", "env"}) || got[1] != (File{"vol", "bad"}) {
		t.Errorf("the files of a container are %v", got)
	}
}
