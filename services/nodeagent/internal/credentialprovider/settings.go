package credentialprovider

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	kubeletv1 "k8s.io/kubelet/config/v1"
	"sigs.k8s.io/yaml"

	"keelson.dev/kit/configfile"
)

// The flags, named as the kubelet's.
const (
	flagConfig = "image-credential-provider-config"
	flagBinDir = "image-credential-provider-bin-dir"
)

// Settings are the flags as given. The zero value is for a node without providers.
type Settings struct {
	// Config is a file of providers, or a folder of such files.
	Config string
	// BinDir is the folder of the programs.
	BinDir string
}

// AddFlags adds the flags.
func (s *Settings) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&s.Config, flagConfig, s.Config,
		"CredentialProviderConfig file (kubelet.config.k8s.io/v1) of programs that provide credentials for images, or "+
			"a directory of such .json, .yaml and .yml files; read at start")
	fs.StringVar(&s.BinDir, flagBinDir, s.BinDir, "directory of the programs of --"+flagConfig)
}

// Validate returns an error if the flags or the files are invalid, a line for each mistake.
func (s *Settings) Validate() error {
	_, err := s.read()
	return err
}

// configured is what the files say.
type configured struct {
	providers []kubeletv1.CredentialProvider
	// hash identifies the content of the files; empty without any.
	hash string
}

func (s *Settings) read() (configured, error) {
	switch {
	case s.Config == "" && s.BinDir == "":
		return configured{}, nil
	case s.Config == "":
		return configured{}, fmt.Errorf("--%s: needs --%s", flagBinDir, flagConfig)
	case s.BinDir == "":
		return configured{}, fmt.Errorf("--%s: needs --%s", flagConfig, flagBinDir)
	case !filepath.IsAbs(s.BinDir):
		return configured{}, fmt.Errorf("--%s: %q must be an absolute path", flagBinDir, s.BinDir)
	}
	files, err := filesAt(s.Config)
	if err != nil {
		return configured{}, fmt.Errorf("--%s: %w", flagConfig, err)
	}
	var out configured
	var wrong []string
	sum, owners := sha256.New(), map[string]string{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return configured{}, fmt.Errorf("--%s: %w", flagConfig, err)
		}
		sum.Write(binary.BigEndian.AppendUint64(nil, uint64(len(data))))
		sum.Write(data)
		providers, mistakes := decode(data)
		mistakes = append(mistakes, repeated(owners, file, providers)...)
		for _, mistake := range mistakes {
			wrong = append(wrong, fmt.Sprintf("--%s: %s: %s", flagConfig, file, mistake))
		}
		out.providers = append(out.providers, providers...)
	}
	if len(wrong) > 0 {
		return configured{}, errors.New(strings.Join(wrong, "\n"))
	}
	out.hash = "sha256:" + hex.EncodeToString(sum.Sum(nil))
	return out, nil
}

// filesAt returns the file at a path, or the files in the folder there, ordered by name.
func filesAt(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, entry := range entries {
		if !entry.IsDir() && slices.Contains([]string{".json", ".yaml", ".yml"}, filepath.Ext(entry.Name())) {
			files = append(files, filepath.Join(path, entry.Name()))
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s has no file whose name ends with .json, .yaml or .yml", path)
	}
	return files, nil
}

// decode reads a file, and returns what is wrong with it.
func decode(data []byte) ([]kubeletv1.CredentialProvider, problems) {
	var config kubeletv1.CredentialProviderConfig
	var raw any
	var wrong problems
	if yaml.Unmarshal(data, &raw) == nil {
		checkShape(&wrong, "", raw, reflect.TypeOf(config))
	}
	if len(wrong) > 0 {
		return nil, wrong
	}
	file := configfile.Kind{APIVersion: kubeletv1.SchemeGroupVersion.String(), Name: "CredentialProviderConfig"}
	if err := file.Decode(data, &config); err != nil {
		// What is indented goes with the line before.
		return nil, strings.Split(strings.ReplaceAll(err.Error(), "\n  ", " "), "\n")
	}
	return config.Providers, check(config.Providers)
}

// repeated reports providers whose name another provider has. owners holds the places of earlier ones by name.
func repeated(owners map[string]string, file string, providers []kubeletv1.CredentialProvider) problems {
	var wrong problems
	for i := range providers {
		name, path := providers[i].Name, fmt.Sprintf("providers[%d].name", i)
		if other, ok := owners[name]; ok && name != "" {
			wrong.add(path, "%q is the name of %s too, each provider must have its own", name, other)
			continue
		}
		owners[name] = path + " in " + file
	}
	return wrong
}
