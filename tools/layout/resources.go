package layout

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"strconv"
	"strings"
)

const (
	apiserver        = "services/apiserver/internal/"
	apiserverLibrary = "k8s.io/apiserver/"
	keelson          = "keelson.dev/"
)

// resourceFolders define API resources.
var resourceFolders = regexp.MustCompile(`^` + apiserver + `(resource|registry/[^/]+/[^/]+)$`)

// servingFolders are the resource folders that serve requests themselves, or compile expressions as the library's
// admission does.
var servingFolders = regexp.MustCompile(`^` + apiserver + `registry/(` +
	`admissionregistration/(expression|mutatingadmissionpolicy|mutatingadmissionpolicybinding|` +
	`mutatingwebhookconfiguration|paramrights|validatingadmissionpolicy|validatingadmissionpolicybinding|` +
	`validatingwebhookconfiguration|webhook)|` +
	`authentication/tokenreview|authorization/accessreview|core/(componentstatus|pod|service)|` +
	`metrics/(nodemetrics|podmetrics)|policy/disruptions|rbac/escalation|` +
	`resource/(resourceclaim|resourceclaimtemplate))$`)

// pureLibrary matches the library's packages for data, arithmetic and the expression language.
var pureLibrary = regexp.MustCompile(
	`^k8s\.io/apiserver/pkg/(apis/flowcontrol/bootstrap|util/shufflesharding|cel(/environment)?)$`)

// checkResources finds the resource folders that import the library k8s.io/apiserver, directly or through other
// packages: the definition of a resource does not depend on how it is served, and its tests are built without the
// library.
func checkResources(repository fs.FS) ([]Finding, error) {
	folders, err := fs.Glob(repository, apiserver+"registry/*/*")
	if err != nil {
		return nil, fmt.Errorf("listing the resources: %w", err)
	}
	w := ways{repository: repository, known: map[string]string{}}
	var findings []Finding
	for _, folder := range append(folders, apiserver+"resource") {
		if !resourceFolders.MatchString(folder) {
			continue
		}
		message, err := w.check(folder)
		if err != nil {
			return findings, err
		}
		if message != "" {
			findings = append(findings, Finding{folder, message})
		}
	}
	return findings, nil
}

// ways finds the import paths from packages to the library.
type ways struct {
	repository fs.FS
	known      map[string]string
}

// check returns what is wrong with a resource folder; empty if nothing is.
func (w ways) check(folder string) (string, error) {
	code, err := w.toLibrary(folder)
	switch serving := servingFolders.MatchString(folder); {
	case err != nil:
		return "", err
	case serving && code == "":
		return "does without k8s.io/apiserver: take it off servingFolders", nil
	case serving:
		return "", nil
	case code != "":
		return fmt.Sprintf("imports %s: what a resource is goes without the API machinery, a package beside it serves "+
			"it", code), nil
	}
	tests, err := w.byFiles(folder, true)
	if tests == "" {
		return "", err
	}
	return fmt.Sprintf("has a test that imports %s: what needs a server is tested in internal/resourcetest", tests), nil
}

// toLibrary returns the import path from the folder to the library; empty without one.
func (w ways) toLibrary(folder string) (string, error) {
	if way, known := w.known[folder]; known {
		return way, nil
	}
	way, err := w.byFiles(folder, false)
	w.known[folder] = way
	return way, err
}

// byFiles returns the import path from the folder's code, or from its tests, to the library.
func (w ways) byFiles(folder string, tests bool) (string, error) {
	names, err := fs.Glob(w.repository, folder+"/*.go")
	if err != nil {
		return "", fmt.Errorf("listing %s: %w", folder, err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") != tests {
			continue
		}
		imports, err := importsOf(w.repository, name)
		if err != nil {
			return "", err
		}
		for _, imported := range imports {
			if way, err := w.byImport(imported); err != nil || way != "" {
				return way, err
			}
		}
	}
	return "", nil
}

func (w ways) byImport(imported string) (string, error) {
	own, ours := strings.CutPrefix(imported, keelson)
	switch {
	case strings.HasPrefix(imported, apiserverLibrary) && !pureLibrary.MatchString(imported):
		return imported, nil
	case !ours:
		return "", nil
	}
	way, err := w.toLibrary(own)
	if way != "" {
		way = path.Base(own) + ", which imports " + way
	}
	return way, err
}

// importsOf returns the imports of a file.
func importsOf(repository fs.FS, name string) ([]string, error) {
	content, err := fs.ReadFile(repository, name)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	file, err := parser.ParseFile(token.NewFileSet(), name, content, parser.ImportsOnly)
	if err != nil {
		return nil, fmt.Errorf("parsing: %w", err)
	}
	var all []string
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, fmt.Errorf("reading an import of %s: %w", name, err)
		}
		all = append(all, imported)
	}
	return all, nil
}
