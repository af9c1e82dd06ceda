package steps

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"keelson.dev/services/nodeagent/internal/plainfile"
	"keelson.dev/services/nodeagent/internal/podenv"
	"keelson.dev/services/nodeagent/internal/volume/emptydir"
)

// environmentFiles reads the files from which the container takes variables. Other containers write them: no file
// outside the volume is read, even if they put a link there.
func (s *Steps) environmentFiles(in ContainerInput) map[podenv.File]podenv.Object[string] {
	out := map[podenv.File]podenv.Object[string]{}
	for _, file := range podenv.Files(in.Entry.Spec) {
		volume := s.Files.Volume(in.Pod.UID, emptydir.Kind{}.Name(), file.Volume)
		if text, err := readEnvironment(volume, file.Path); err != nil {
			out[file] = podenv.Object[string]{Err: err}
		} else {
			out[file] = podenv.Object[string]{Value: &text}
		}
	}
	return out
}

// readEnvironment reads a file of a volume, up to the maximum size of an environment.
func readEnvironment(volume, path string) (string, error) {
	file, err := plainfile.Root(volume).Open(filepath.Join(volume, path))
	if at := (*fs.PathError)(nil); errors.As(err, &at) {
		return "", at.Err // users of the Pod need not know where the node keeps it
	}
	if err != nil {
		return "", err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, podenv.MaxSize+1))
	if len(text) > podenv.MaxSize {
		return "", fmt.Errorf("it is larger than %d bytes", podenv.MaxSize)
	}
	return string(text), err
}
