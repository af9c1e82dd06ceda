// Package reference writes the manual pages and shell completions for keel's commands, which distribution packages
// contain.
package reference

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// Write writes into a folder, at the places where man and the shells look in that of shared files, a manual page
// for each command below a root and the completions. The output depends on the commands and the date alone.
func Write(root *cobra.Command, dir string, at time.Time) error {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for file, write := range map[string]func(io.Writer) error{
		"bash-completion/completions/" + root.Name(): func(w io.Writer) error {
			return root.GenBashCompletionV2(w, true)
		},
		"zsh/_" + root.Name(): root.GenZshCompletion,
		"fish/vendor_completions.d/" + root.Name() + ".fish": func(w io.Writer) error {
			return root.GenFishCompletion(w, true)
		},
	} {
		if err := writeFile(filepath.Join(dir, file), write); err != nil {
			return err
		}
	}
	return writePages(root, filepath.Join(dir, "man/man1"), at.UTC())
}

func writePages(command *cobra.Command, dir string, at time.Time) error {
	if !command.IsAvailableCommand() && command.HasParent() {
		return nil
	}
	command.DisableAutoGenTag = true
	header := &doc.GenManHeader{Section: "1", Date: &at, Source: "Keelson", Manual: "Keelson"}
	name := strings.ReplaceAll(command.CommandPath(), " ", "-")
	err := writeFile(filepath.Join(dir, name+".1.gz"), func(w io.Writer) error {
		packed := gzip.NewWriter(w)
		var page bytes.Buffer
		if err := doc.GenMan(command, header, &page); err != nil {
			return err
		}
		if _, err := packed.Write(page.Bytes()); err != nil {
			return err
		}
		return packed.Close()
	})
	if err != nil {
		return err
	}
	for _, below := range command.Commands() {
		if err := writePages(below, dir, at); err != nil {
			return err
		}
	}
	return nil
}

// writeFile writes a file and the folders above it.
func writeFile(file string, write func(io.Writer) error) error {
	var content bytes.Buffer
	if err := write(&content); err != nil {
		return fmt.Errorf("making %s: %w", filepath.Base(file), err)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fmt.Errorf("making the folder of %s: %w", filepath.Base(file), err)
	}
	if err := os.WriteFile(file, content.Bytes(), 0o644); err != nil {
		return fmt.Errorf("writing %s: %w", filepath.Base(file), err)
	}
	return nil
}
